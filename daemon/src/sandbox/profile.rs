//! The profile of a call: by name, by keys, never wider than the ceilings. Pure.

use crate::config::Config;
use crate::config::policy::{BUILT_IN, Profile, find_profile};
use toold_proto::sandbox::{Network, ProfileMode, SandboxOptions, SandboxSetting};

/// The profile that a call asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChosenProfile {
    pub name: String,
    pub profile: Profile,
}

/// A profile that a call must not be wider than: `policy.max`, or that of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ceiling {
    /// The source, for a person.
    pub of: String,
    pub profile: Profile,
}

/// The reason why a call has no profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProfileError {
    Unknown {
        param: &'static str,
        name: String,
        known: Vec<String>,
    },
    /// A key that does not go with the mode.
    Key {
        param: &'static str,
        problem: String,
    },
    /// It allows more than a ceiling, by this key.
    Wider {
        name: String,
        key: &'static str,
        ceiling: String,
    },
}

/// Returns the ceiling of the config.
pub fn config_ceiling(config: &Config) -> Ceiling {
    let profile = find_profile(&config.policy.max, &config.profile);
    let profile = profile.unwrap_or_else(|| Profile::of_mode(ProfileMode::ReadOnly));
    Ceiling { of: format!("policy.max, {}", config.policy.max), profile }
}

/// Returns true if a call without `sandbox` is not confined, and no ceiling of the config has to be looked at.
pub fn is_unconfined_by_default(config: &Config) -> bool {
    config.policy.default == "full" && config.policy.max == "full"
}

/// Chooses the profile of a call. `session`: the ceiling of its session, if it has one.
pub fn choose(
    asked: Option<&SandboxSetting>,
    config: &Config,
    session: Option<&Ceiling>,
) -> Result<ChosenProfile, ProfileError> {
    let chosen = match asked {
        None => named("sandbox", &config.policy.default, config)?,
        Some(SandboxSetting::Name(name)) => named("sandbox", name, config)?,
        Some(SandboxSetting::Options(options)) => by_keys(options, config)?,
    };
    let max = config_ceiling(config);
    for ceiling in [&max].into_iter().chain(session) {
        if let Some(key) = chosen.profile.wider_than(&ceiling.profile, config.sandbox.caches) {
            return Err(ProfileError::Wider { name: chosen.name, key, ceiling: ceiling.of.clone() });
        }
    }
    Ok(chosen)
}

fn named(param: &'static str, name: &str, config: &Config) -> Result<ChosenProfile, ProfileError> {
    match find_profile(name, &config.profile) {
        Some(profile) => Ok(ChosenProfile { name: name.into(), profile }),
        None => {
            let built_in = BUILT_IN.iter().map(|(name, _)| (*name).to_string());
            let known = built_in.chain(config.profile.keys().cloned()).collect();
            Err(ProfileError::Unknown { param, name: name.into(), known })
        }
    }
}

fn by_keys(options: &SandboxOptions, config: &Config) -> Result<ChosenProfile, ProfileError> {
    let SandboxOptions { profile, mode, roots, network, require, unix_sockets, caches } = options;
    let base = match (profile, mode) {
        (Some(name), _) => named("sandbox.profile", name, config)?,
        (None, Some(mode)) => built_in(*mode),
        (None, None) => {
            let default = named("sandbox", &config.policy.default, config)?;
            // Keys restrict: they must not be lost in a profile that restricts nothing.
            if default.profile.mode == ProfileMode::Full { built_in(ProfileMode::WorkspaceWrite) } else { default }
        }
    };
    let ChosenProfile { name, profile: mut chosen } = base;
    if let Some(mode) = *mode {
        if (chosen.mode == ProfileMode::Full) != (mode == ProfileMode::Full) {
            chosen = Profile::of_mode(mode);
        }
        chosen.mode = mode;
    }
    let key = |param, problem: &str| Err(ProfileError::Key { param, problem: problem.into() });
    if chosen.mode == ProfileMode::Full {
        if !roots.is_empty() {
            return key("sandbox.roots", "the mode full has no roots; use workspace-write");
        }
        if network.is_some_and(|network| network != Network::Full) {
            return key("sandbox.network", "the mode full confines nothing; use workspace-write or read-only");
        }
        if !require.is_empty() {
            return key("sandbox.require", "the mode full enforces nothing; use workspace-write or read-only");
        }
        return Ok(ChosenProfile { name, profile: chosen });
    }
    if chosen.mode == ProfileMode::ReadOnly {
        if !roots.is_empty() {
            return key("sandbox.roots", "the mode read-only writes in no root; use workspace-write");
        }
        chosen.roots.clear();
    }
    for (at, path) in roots.iter().enumerate() {
        if !path.starts_with('/') || path.contains('\0') {
            return Err(ProfileError::Key {
                param: "sandbox.roots",
                problem: format!("[{at}] must be an absolute path, not {path:?}"),
            });
        }
    }
    if let Some(path) = unix_sockets.iter().find(|path| !path.starts_with('/') || path.contains('\0')) {
        return Err(ProfileError::Key {
            param: "sandbox.unix_sockets",
            problem: format!("must be absolute paths, not {path:?}"),
        });
    }
    chosen.roots.extend(roots.iter().cloned());
    chosen.network = network.unwrap_or(chosen.network);
    chosen.require.extend(require.iter().copied());
    chosen.unix_sockets.extend(unix_sockets.iter().cloned());
    chosen.caches = caches.or(chosen.caches);
    Ok(ChosenProfile { name, profile: chosen })
}

fn built_in(mode: ProfileMode) -> ChosenProfile {
    let name = BUILT_IN.iter().find(|(_, of)| *of == mode).map_or("full", |(name, _)| name);
    ChosenProfile { name: name.into(), profile: Profile::of_mode(mode) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use toold_proto::sandbox::Measure;

    fn config(text: &str) -> Config {
        toml::from_str(text).expect("a config")
    }

    fn ask(value: serde_json::Value, config: &Config) -> Result<ChosenProfile, ProfileError> {
        let setting: SandboxSetting = serde_json::from_value(value).expect("a setting");
        choose(Some(&setting), config, None)
    }

    #[test]
    fn a_call_without_a_sandbox_has_the_default_of_the_config() {
        assert_eq!(choose(None, &Config::default(), None).expect("full").profile.mode, ProfileMode::Full);
        let strict = config("[policy]\ndefault = \"read-only\"");
        assert_eq!(choose(None, &strict, None).expect("a profile").profile.mode, ProfileMode::ReadOnly);
    }

    #[test]
    fn keys_are_added_to_a_profile_and_never_lost_in_one_that_confines_nothing() {
        let config = config("[profile.ci]\nmode = \"workspace-write\"\nroots = [\"/srv\"]\nnetwork = \"loopback\"");
        let chosen =
            ask(json!({"profile": "ci", "roots": ["/opt"], "require": ["fs_write"]}), &config).expect("a profile");
        assert_eq!((chosen.name.as_str(), chosen.profile.network), ("ci", Network::Loopback));
        assert_eq!(
            (chosen.profile.roots, chosen.profile.require),
            (vec!["/srv".into(), "/opt".into()], vec![Measure::FsWrite])
        );
        let chosen = ask(json!({"network": "off"}), &config).expect("a profile");
        assert_eq!((chosen.name.as_str(), chosen.profile.mode), ("workspace-write", ProfileMode::WorkspaceWrite));
        let chosen = ask(json!({"profile": "full", "mode": "read-only"}), &config).expect("a profile");
        assert_eq!(chosen.profile.network, Network::Off);
        for (keys, param) in [
            (json!({"profile": "full", "roots": ["/srv"]}), "sandbox.roots"),
            (json!({"mode": "full", "network": "off"}), "sandbox.network"),
            (json!({"mode": "full", "require": ["hide"]}), "sandbox.require"),
            (json!({"mode": "read-only", "roots": ["/srv"]}), "sandbox.roots"),
            (json!({"roots": ["srv"]}), "sandbox.roots"),
            (json!({"unix_sockets": ["sock"]}), "sandbox.unix_sockets"),
        ] {
            let refused = ask(keys.clone(), &config);
            assert!(matches!(refused, Err(ProfileError::Key { param: at, .. }) if at == param), "{keys}: {refused:?}");
        }
        assert!(matches!(ask(json!("none"), &config), Err(ProfileError::Unknown { param: "sandbox", .. })));
    }

    #[test]
    fn a_call_is_never_wider_than_the_config_or_its_session() {
        let config = config("[policy]\ndefault = \"read-only\"\nmax = \"workspace-write\"");
        assert!(matches!(ask(json!("full"), &config), Err(ProfileError::Wider { key: "mode", .. })));
        assert!(matches!(ask(json!({"network": "full"}), &config), Err(ProfileError::Wider { key: "network", .. })));
        assert!(ask(json!("workspace-write"), &config).is_ok());
        let session = Ceiling { of: "the session s".into(), profile: Profile::of_mode(ProfileMode::ReadOnly) };
        let setting = SandboxSetting::Name("workspace-write".into());
        let refused = choose(Some(&setting), &config, Some(&session));
        assert!(matches!(refused, Err(ProfileError::Wider { key: "mode", ceiling, .. }) if ceiling == "the session s"));
    }
}
