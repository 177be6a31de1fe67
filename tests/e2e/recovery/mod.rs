//! Tests of what survives: a killed daemon, shim or zygote, damaged records, a full disk, a power cut.

mod damage;
mod damage_events;
mod disk;
mod hung_disk;
mod namespaces;
mod orphans;
mod power_cut;
mod recover;
mod removed;
mod shim_requests;
mod shim_reuse;
mod survive;
mod survive_many;
mod wall_clock;
