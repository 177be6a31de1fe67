//! Environment variables by which a caller can make a known program run other code.

/// Names, sorted.
const EXACT: &[&str] = &[
    "AR",
    "BASHOPTS",
    "BASH_ENV",
    "BROWSER",
    "CC",
    "CDPATH",
    "CLASSPATH",
    "COMPILER_PATH",
    "CVS_RSH",
    "CXX",
    "EDITOR",
    "ENV",
    "FPATH",
    "GCC_EXEC_PREFIX",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "GREP_OPTIONS",
    "HOME",
    "IFS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "KUBECONFIG",
    "KUBE_EDITOR",
    "LD",
    "LESS",
    "LESSCLOSE",
    "LESSEDIT",
    "LESSOPEN",
    "LOCPATH",
    "MAKE",
    "MAKEFILES",
    "MAKEFLAGS",
    "MANOPT",
    "MANPAGER",
    "MFLAGS",
    "NODE_OPTIONS",
    "OPENSSL_CONF",
    "OPENSSL_ENGINES",
    "OPENSSL_MODULES",
    "PAGER",
    "PATH",
    "PROMPT_COMMAND",
    "PS4",
    "RSYNC_RSH",
    "RUSTC",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "RUSTDOC",
    "RUSTFLAGS",
    "SHELL",
    "SHELLOPTS",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "SUDO_EDITOR",
    "SVN_SSH",
    "SYSTEMD_EDITOR",
    "SYSTEMD_PAGER",
    "TAR_OPTIONS",
    "VISUAL",
    "XDG_CONFIG_DIRS",
    "XDG_CONFIG_HOME",
    "XDG_DATA_DIRS",
    "ZDOTDIR",
    "ZIPOPT",
    "_JAVA_OPTIONS",
];

/// Beginnings of names.
const PREFIXES: &[&str] = &[
    "BASH_FUNC_",
    "BUNDLE_",
    "CARGO_",
    "COMPOSER_",
    "DENO_",
    "DOTNET_",
    "DYLD_",
    "ERL_",
    "ELIXIR_",
    "GDB",
    "GEM_",
    "GIT_",
    "GOENV",
    "GOFLAGS",
    "GOPATH",
    "GOROOT",
    "GOTOOL",
    "GRADLE_",
    "HG",
    "JULIA_",
    "LD_",
    "LUA_",
    "MAVEN_",
    "MVN_",
    "NIX_",
    "NODE_",
    "NPM_CONFIG_",
    "PERL",
    "PHP",
    "PIP_",
    "PNPM_",
    "POETRY_",
    "PYTHON",
    "RUBY",
    "RUSTUP_",
    "UV_",
    "VIM",
    "YARN_",
    "npm_config_",
    "R_",
];

/// Returns true if a variable of this name can make a program run other code than its own.
pub fn runs_code(name: &str) -> bool {
    EXACT.binary_search(&name).is_ok() || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_run_code_are_known_and_others_are_not() {
        assert!(EXACT.is_sorted());
        let code = "PATH LD_PRELOAD BASH_ENV ENV IFS GIT_SSH_COMMAND PAGER EDITOR PYTHONPATH NODE_OPTIONS PERL5LIB RUBYOPT \
            BASH_FUNC_git%% HOME ZDOTDIR npm_config_script_shell";
        for name in code.split_whitespace() {
            assert!(runs_code(name), "{name}");
        }
        for name in ["LANG", "TERM", "CI", "MY_PATH", "TOKEN", "GTK_THEME", "DEBUG"] {
            assert!(!runs_code(name), "{name}");
        }
    }
}
