//! Every message table against Kafka's own definitions.
//!
//! Goal: no field, type, version, null, tag or default differs from Kafka's.
//! Method: the definitions are JSON files with `//` comments, looked for in `shared/kafka-messages` beside the checkout; each
//! table describes itself as a constant, and the two are held side by side. Without the files there is nothing to compare.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use skerry_core::api::{APIS, consumer_protocol};
use skerry_core::wire::{Field, Message, Type, Version, Versions};

fn definitions() -> Option<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|dir| dir.join("shared/kafka-messages"))
        .find(|dir| dir.is_dir())
}

fn definition(dir: &Path, name: &str) -> Json {
    let text = fs::read_to_string(dir.join(name).with_extension("json")).unwrap();
    let without_comments: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect();
    serde_json::from_str(&without_comments).unwrap()
}

fn versions(text: Option<&Json>) -> Versions {
    let number = |text: &str| text.parse::<Version>().unwrap();
    match text.map(|text| text.as_str().unwrap()) {
        None | Some("none") => Versions::NONE,
        Some(text) => match (text.strip_suffix('+'), text.split_once('-')) {
            (Some(min), _) => Versions {
                min: number(min),
                max: Version::MAX,
            },
            (_, Some((min, max))) => Versions {
                min: number(min),
                max: number(max),
            },
            _ => Versions {
                min: number(text),
                max: number(text),
            },
        },
    }
}

/// `timeoutMs` and `LastKnownElr` as `timeout_ms` and `last_known_elr`.
fn snake(name: &str) -> String {
    let mut snake = String::new();
    for (place, letter) in name.chars().enumerate() {
        if letter.is_uppercase() && place > 0 {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

/// A type by Kafka's name, and the fields if it is, or holds, a struct.
fn type_name(ty: &Type) -> (String, Option<&'static [Field]>) {
    let plain = |name: &str| (name.to_string(), None);
    match ty {
        Type::Bool => plain("bool"),
        Type::Int8 => plain("int8"),
        Type::Int16 => plain("int16"),
        Type::Int32 => plain("int32"),
        Type::Int64 => plain("int64"),
        Type::Uuid => plain("uuid"),
        Type::String => plain("string"),
        Type::Bytes => plain("bytes"),
        Type::Records => plain("records"),
        Type::Array(item) => {
            let (name, fields) = type_name(item);
            (format!("[]{name}"), fields)
        }
        Type::Struct(name, fields) => ((*name).to_string(), Some(fields)),
    }
}

/// A default in one spelling for both sides.
fn kafka_default(json: &Json) -> String {
    let ty = json["type"].as_str().unwrap();
    let text = match &json["default"] {
        Json::Null => "",
        Json::String(text) => text,
        other => return other.to_string().to_lowercase(),
    };
    match (ty, text) {
        (_, "null") => "null".into(),
        ("string", text) => format!("{text:?}"),
        ("bool", "") => "false".into(),
        ("int8" | "int16" | "int32" | "int64", "") => "0".into(),
        ("int32", hex) if hex.starts_with("0x") => i64::from_str_radix(&hex[2..], 16).unwrap().to_string(),
        ("records", "") => "null".into(),
        (_, text) => text.into(),
    }
}

fn our_default(field: &Field) -> String {
    let may_be_null = field.nullable != Versions::NONE;
    match (field.ty, field.default) {
        (_, Some("None" | "Array::Null")) | (Type::Records, None) => "null".into(),
        (_, Some("i32::MIN")) => i32::MIN.to_string(),
        (_, Some("i32::MAX")) => i32::MAX.to_string(),
        (_, Some("i64::MAX")) => i64::MAX.to_string(),
        (_, Some("Some(&[])")) => String::new(),
        (_, Some(text)) => text.trim_start_matches("Some(").trim_end_matches(')').to_lowercase(),
        // What `Option::default` gives.
        (Type::String | Type::Bytes | Type::Struct(..), None) if may_be_null => "null".into(),
        (Type::String, None) => r#""""#.into(),
        (Type::Bool, None) => "false".into(),
        (Type::Int8 | Type::Int16 | Type::Int32 | Type::Int64, None) => "0".into(),
        (_, None) => String::new(),
    }
}

/// The part of `versions` in which what holds the field exists at all: the rest says nothing.
fn clamp(versions: Versions, within: Versions) -> Versions {
    let (min, max) = (versions.min.max(within.min), versions.max.min(within.max));
    if min <= max {
        Versions { min, max }
    } else {
        Versions::NONE
    }
}

/// Compares the fields of one struct that exists in the versions `within`. Kafka's fields in other versions are not ours to
/// declare.
fn compare(path: &str, ours: &[Field], kafka: &Json, common: &Json, within: Versions) -> usize {
    let theirs: Vec<&Json> = kafka["fields"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|field| versions(field.get("versions")).min <= within.max)
        .collect();
    let names = |names: Vec<String>| names.join(" ");
    assert_eq!(
        names(ours.iter().map(|field| field.name.to_string()).collect()),
        names(
            theirs
                .iter()
                .map(|field| snake(field["name"].as_str().unwrap()))
                .collect()
        ),
        "fields of {path}"
    );
    let mut compared = 0;
    let mut last_tag = None;
    for (ours, theirs) in ours.iter().zip(theirs) {
        let path = format!("{path}.{}", ours.name);
        let (type_name, fields) = type_name(ours.ty);
        assert_eq!(type_name, theirs["type"].as_str().unwrap(), "type of {path}");
        let exists = clamp(ours.versions, within);
        assert_eq!(
            exists,
            clamp(versions(theirs.get("versions")), within),
            "versions of {path}"
        );
        let nullable = clamp(versions(theirs.get("nullableVersions")), exists);
        assert_eq!(clamp(ours.nullable, exists), nullable, "null in {path}");
        assert_eq!(
            ours.tag.map(u64::from),
            theirs.get("tag").map(|tag| tag.as_u64().unwrap()),
            "tag of {path}"
        );
        if ours.tag.is_some() {
            assert_eq!(
                ours.versions,
                versions(theirs.get("taggedVersions")),
                "{path} is tagged wherever it is"
            );
            assert!(last_tag < ours.tag, "{path} stands after a higher tag");
            last_tag = ours.tag;
        }
        assert_eq!(our_default(ours), kafka_default(theirs), "default of {path}");
        compared += 1;
        if let Some(fields) = fields {
            let name = type_name.trim_start_matches("[]");
            let shared = common
                .as_array()
                .and_then(|structs| structs.iter().find(|common| common["name"] == name));
            compared += compare(&path, fields, shared.unwrap_or(theirs), common, exists);
        }
    }
    compared
}

fn compare_message(dir: &Path, name: &str, declared: Versions, flexible: Versions, fields: &[Field]) -> usize {
    let kafka = definition(dir, name);
    let valid = versions(kafka.get("validVersions"));
    assert_eq!(declared.min, valid.min, "lowest version of {name}");
    assert!(declared.max <= valid.max, "highest version of {name}");
    assert_eq!(
        flexible,
        versions(kafka.get("flexibleVersions")),
        "flexible versions of {name}"
    );
    compare(name, fields, &kafka, &kafka["commonStructs"], declared)
}

#[test]
fn tables_are_kafkas() {
    let Some(dir) = definitions() else {
        eprintln!("no shared/kafka-messages beside the checkout: nothing to compare with");
        return;
    };
    let mut compared = 0;
    for api in APIS {
        for (fields, kind) in [(api.key.tables().0, "Request"), (api.key.tables().1, "Response")] {
            let name = format!("{}{kind}", api.name);
            let key = definition(&dir, &name)["apiKey"].as_i64();
            assert_eq!(key, Some(api.key as i64), "key of {name}");
            compared += compare_message(&dir, &name, api.versions, api.flexible, fields);
        }
    }
    fn plain<'a, M: Message<'a>>(dir: &Path) -> usize {
        compare_message(dir, M::NAME, M::VERSIONS, M::FLEXIBLE, M::FIELDS)
    }
    compared += plain::<consumer_protocol::ConsumerProtocolSubscription>(&dir);
    compared += plain::<consumer_protocol::ConsumerProtocolAssignment>(&dir);
    assert!(compared > 500, "only {compared} fields were compared");
}
