//! `gmm-bmm completions` and `gmm-bmm man`: shell completions and manual pages.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use clap::CommandFactory;

use super::Cli;
use super::console::Console;
use super::files::create_output;

/// Print the completion script of a shell
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  gmm-bmm completions bash > ~/.local/share/bash-completion/completions/gmm-bmm
  gmm-bmm completions zsh > ~/.zfunc/_gmm-bmm")]
pub(super) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

pub(super) fn completions(args: &CompletionsArgs) -> anyhow::Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "gmm-bmm", &mut text);
    Ok(std::io::stdout().write_all(&text)?)
}

/// Write a manual page for each command
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  gmm-bmm man ~/.local/share/man/man1 && man gmm-bmm-fit")]
pub(super) struct ManArgs {
    /// Folder to write to
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

pub(super) fn man(args: &ManArgs, console: &Console) -> anyhow::Result<()> {
    std::fs::create_dir_all(&args.folder)
        .with_context(|| format!("cannot create '{}'", args.folder.display()))?;
    let mut command = Cli::command();
    command.build();
    let subcommands = command.get_subcommands().filter(|sub| !sub.is_hide_set()).map(|sub| {
        let name: &'static str = format!("gmm-bmm-{}", sub.get_name()).leak();
        sub.clone().name(name)
    });
    let mut pages: Vec<_> = subcommands.collect();
    pages.push(command);
    let number = pages.len();
    for page in pages {
        let mut file = create_output(&args.folder.join(format!("{}.1", page.get_name())))?;
        clap_mangen::Man::new(page).render(&mut file)?;
        file.commit()?;
    }
    console.note(&format!("{number} manual pages written to '{}'", args.folder.display()));
    Ok(())
}
