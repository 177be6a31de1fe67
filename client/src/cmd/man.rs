//! `man`: the manual pages, from the command line's own definition.

use super::Context;
use crate::autostart;
use crate::failure::{DONE, Failure};
use crate::help;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Write a page for toolctl, for each of its commands and for toold into this directory
    /// [default: print toolctl's own page]
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// One manual page: the name of its file, and its text.
pub struct Page {
    pub file: String,
    pub text: String,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, Failure> {
    let Some(dir) = args.dir else {
        let page = own_pages()?.into_iter().next().map(|page| page.text).unwrap_or_default();
        cx.console.print(&page)?;
        return Ok(DONE);
    };
    let pages = pages()?;
    std::fs::create_dir_all(&dir).map_err(Failure::io("create the directory for manual pages"))?;
    for page in &pages {
        std::fs::write(dir.join(&page.file), &page.text).map_err(Failure::io("write a manual page"))?;
    }
    cx.console.print(&format!("{} pages in {}\n", pages.len(), dir.display()))?;
    Ok(DONE)
}

/// Every page: toolctl's first, then its commands', then the daemon's, which its own program prints.
pub fn pages() -> Result<Vec<Page>, Failure> {
    let mut pages = own_pages()?;
    pages.push(Page { file: "toold.1".into(), text: daemon_page(&autostart::program())? });
    Ok(pages)
}

fn own_pages() -> Result<Vec<Page>, Failure> {
    let mut command = help::command();
    command.build();
    let mut pages = Vec::new();
    collect(&command, "toolctl", &mut pages).map_err(Failure::io("render a manual page"))?;
    Ok(pages)
}

fn collect(command: &clap::Command, name: &str, pages: &mut Vec<Page>) -> io::Result<()> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone().version(env!("CARGO_PKG_VERSION"))).render(&mut text)?;
    pages.push(Page { file: format!("{name}.1"), text: String::from_utf8_lossy(&text).into_owned() });
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        collect(sub, &format!("{name}-{}", sub.get_name()), pages)?;
    }
    Ok(())
}

fn daemon_page(program: &Path) -> Result<String, Failure> {
    let output = Command::new(program).arg("__man").stdin(Stdio::null()).output();
    let output = output.map_err(Failure::io("run toold for its manual page"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(Failure::Unavailable(format!(
            "{} has no manual page to print; is it older than this toolctl?",
            program.display()
        ))),
    }
}
