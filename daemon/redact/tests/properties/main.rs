//! Properties of the redactor: nothing leaks at a cut, redacted text stays as it is, hostile text costs linear time.

mod cuts;
mod hostile;
mod layers;
mod repository;
mod rule_files;
mod samples;
