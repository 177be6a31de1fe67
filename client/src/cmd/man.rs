//! `man`: the manual pages, from the definition of the command line.

use super::Context;
use crate::autostart;
use crate::error::{CliError, DONE};
use crate::help;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The directory for the pages of toolctl, of each of its commands and of toold [default: print toolctl's]
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    dir: Option<PathBuf>,
}

/// A manual page: the name of its file, and its text.
pub struct Page {
    pub file: String,
    pub text: String,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let Some(dir) = args.dir else {
        let page = own_pages()?.into_iter().next().map(|page| page.text).unwrap_or_default();
        cx.console.print(&page)?;
        return Ok(DONE);
    };
    let pages = pages()?;
    std::fs::create_dir_all(&dir).map_err(CliError::io("create the directory for manual pages"))?;
    for page in &pages {
        std::fs::write(dir.join(&page.file), &page.text).map_err(CliError::io("write a manual page"))?;
    }
    cx.console.print(&format!("{} pages in {}\n", pages.len(), dir.display()))?;
    Ok(DONE)
}

/// Returns every page: toolctl's first, then its commands', then the daemon's, which its own program prints.
pub fn pages() -> Result<Vec<Page>, CliError> {
    let mut pages = own_pages()?;
    pages.push(Page { file: "toold.1".into(), text: daemon_page(&autostart::program())? });
    Ok(pages)
}

pub fn own_pages() -> Result<Vec<Page>, CliError> {
    let mut command = help::command();
    command.build();
    let mut pages = Vec::new();
    collect(&command, "toolctl", &mut pages).map_err(CliError::io("render a manual page"))?;
    Ok(pages)
}

fn collect(command: &clap::Command, name: &str, pages: &mut Vec<Page>) -> io::Result<()> {
    let mut text = Vec::new();
    render(command, name, &mut text)?;
    pages.push(Page { file: format!("{name}.1"), text: String::from_utf8_lossy(&text).into_owned() });
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        collect(sub, &format!("{name}-{}", sub.get_name()), pages)?;
    }
    Ok(())
}

/// Renders one page. The synopsis is the usage of --help; the text below the options becomes notes and examples.
fn render(command: &clap::Command, name: &str, to: &mut Vec<u8>) -> io::Result<()> {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").to_owned();
    let below = command.get_after_help().map(|help| help.to_string()).unwrap_or_default();
    let (notes, examples) = below.split_once("Examples:\n").unwrap_or((&below, ""));
    let page = clap_mangen::Man::new(command.clone().override_usage(usage))
        .source(concat!("toolctl ", env!("CARGO_PKG_VERSION")))
        .manual("toolctl");
    page.render_title(to)?;
    page.render_name_section(to)?;
    page.render_synopsis_section(to)?;
    page.render_description_section(to)?;
    page.render_options_section(to)?;
    if command.get_subcommands().any(|sub| !sub.is_hide_set()) {
        page.render_subcommands_section(to)?;
    }
    let notes: Vec<String> = notes.lines().filter(|line| !line.is_empty()).map(roff).collect();
    if !notes.is_empty() {
        to.extend(format!(".SH NOTES\n{}\n", notes.join("\n.PP\n")).into_bytes());
    }
    if !examples.is_empty() {
        let lines: Vec<String> = examples.lines().map(|line| roff(line.trim_start())).collect();
        to.extend(format!(".SH EXAMPLES\n.nf\n{}\n.fi\n", lines.join("\n")).into_bytes());
    }
    let also = if name == "toolctl" { "toold" } else { "toolctl" };
    to.extend(format!(".SH \"SEE ALSO\"\n.BR {also} (1)\n").into_bytes());
    Ok(())
}

/// Escapes a line of text for roff.
fn roff(line: &str) -> String {
    let text = line.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq").replace('`', "\\(ga");
    if text.starts_with('.') { format!("\\&{text}") } else { text }
}

fn daemon_page(program: &Path) -> Result<String, CliError> {
    let output = Command::new(program).arg("__man").stdin(Stdio::null()).output();
    let output = output.map_err(CliError::io("run toold for its manual page"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(CliError::Unavailable(format!(
            "{} has no manual page to print; is it older than this toolctl?",
            program.display()
        )))
    }
}
