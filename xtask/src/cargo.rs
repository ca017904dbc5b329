//! The place of the workspace, and cargo's facts about it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// The root of the repository: the folder above this package.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_path_buf()
}

/// The cargo that started us, so that a `+toolchain` given by hand is kept.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Cargo of another toolchain. `CARGO` and its like name the toolchain we were started by and would
/// mislead the other one's build scripts.
pub(crate) fn cargo_of(toolchain: &str) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", toolchain, "cargo"]).current_dir(root());
    for name in ["CARGO", "RUSTUP_TOOLCHAIN", "RUSTC", "RUSTDOC"] {
        command.env_remove(name);
    }
    command
}

/// `RUSTFLAGS` of the caller with ours after them.
pub(crate) fn rustflags(ours: &str) -> String {
    match std::env::var("RUSTFLAGS") {
        Ok(theirs) if !theirs.is_empty() => format!("{theirs} {ours}"),
        _ => ours.to_owned(),
    }
}

/// Whether a command starts and succeeds, with nothing shown.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The output of `cargo metadata --no-deps` for the workspace.
pub(crate) struct Metadata(Value);

/// One dependency as a manifest names it.
#[derive(Debug, Clone)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `normal`, `build` or `dev`.
    pub(crate) kind: String,
    pub(crate) is_optional: bool,
}

/// One package of the workspace.
#[derive(Debug, Clone)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// From the root of the repository: `crates/tape`.
    pub(crate) folder: String,
    /// `[package.metadata.unitape] layer`, where it is given as an integer.
    pub(crate) layer: Option<i64>,
    pub(crate) publish_forbidden: bool,
    pub(crate) license: Option<String>,
    pub(crate) dependencies: Vec<Dependency>,
    /// Integration tests by name.
    pub(crate) tests: Vec<String>,
}

impl Package {
    /// Whether a file, as a path from the root, is in the package's folder.
    pub(crate) fn holds(&self, file: &str) -> bool {
        file.strip_prefix(&self.folder).is_some_and(|rest| rest.starts_with('/'))
    }
}

impl Metadata {
    /// Asks cargo.
    pub(crate) fn load() -> Result<Self, String> {
        let mut command = cargo();
        command.args(["metadata", "--no-deps", "--format-version", "1", "--offline"]);
        let output = command.stderr(Stdio::inherit()).output().map_err(|e| format!("cargo metadata: {e}"))?;
        if !output.status.success() {
            return Err(format!("cargo metadata: {}", output.status));
        }
        let value = serde_json::from_slice(&output.stdout).map_err(|e| format!("cargo metadata: {e}"))?;
        Ok(Self(value))
    }

    /// The directory of cargo's builds; heeds `CARGO_TARGET_DIR` and configuration.
    pub(crate) fn target_dir(&self) -> Result<PathBuf, String> {
        self.0["target_directory"]
            .as_str()
            .map(PathBuf::from)
            .ok_or_else(|| "cargo metadata names no target directory".to_owned())
    }

    /// The packages, as cargo orders them.
    pub(crate) fn packages(&self) -> Vec<Package> {
        items(&self.0["packages"]).map(package).collect()
    }
}

fn package(value: &Value) -> Package {
    let ours = &value["metadata"]["unitape"];
    let manifest = Path::new(value["manifest_path"].as_str().unwrap_or_default());
    let folder = manifest.parent().and_then(|folder| folder.strip_prefix(root()).ok());
    Package {
        name: text(&value["name"]),
        folder: folder.map(|folder| folder.to_string_lossy().into_owned()).unwrap_or_default(),
        layer: ours["layer"].as_i64(),
        publish_forbidden: value["publish"].as_array().is_some_and(Vec::is_empty),
        license: value["license"].as_str().map(str::to_owned),
        dependencies: items(&value["dependencies"])
            .map(|dep| Dependency {
                name: text(&dep["name"]),
                kind: dep["kind"].as_str().unwrap_or("normal").to_owned(),
                is_optional: dep["optional"] == true,
            })
            .collect(),
        tests: targets(value, "test"),
    }
}

fn targets(package: &Value, kind: &str) -> Vec<String> {
    items(&package["targets"])
        .filter(|target| items(&target["kind"]).any(|k| k == kind))
        .map(|target| text(&target["name"]))
        .collect()
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// `publish = false` reaches us as an empty list and an absent key as null; to mix them up would
    /// let a crate be published.
    #[test]
    fn publish_is_forbidden_only_by_an_empty_list() {
        let one = |publish: Value| {
            package(&json!({"name": "a", "publish": publish, "dependencies": [], "targets": []}))
        };
        assert!(one(json!([])).publish_forbidden);
        assert!(!one(Value::Null).publish_forbidden);
        assert!(!one(json!(["somewhere"])).publish_forbidden);
    }

    /// Cargo writes a normal dependency's kind as null.
    #[test]
    fn fields_are_read_from_where_cargo_puts_them() {
        let got = package(&json!({
            "name": "unitape-tape", "manifest_path": root().join("crates/tape/Cargo.toml"), "publish": [], "license": "Apache-2.0",
            "metadata": {"unitape": {"layer": 1}},
            "dependencies": [{"name": "a", "kind": null}, {"name": "b", "kind": "dev"}],
            "targets": [{"name": "lib", "kind": ["lib"]}, {"name": "kill", "kind": ["test"]}],
        }));
        assert_eq!((got.layer, got.license.as_deref()), (Some(1), Some("Apache-2.0")));
        assert_eq!(got.tests, ["kill"]);
        assert_eq!(got.folder, "crates/tape");
        let kinds: Vec<_> = got.dependencies.iter().map(|d| d.kind.as_str()).collect();
        assert_eq!(kinds, ["normal", "dev"]);
    }
}
