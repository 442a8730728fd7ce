//! `skerry config`: the settings, their values and what they do, from the one table that declares them.

use std::io::{self, Write};

use serde_json::json;

use super::args::ConfigArgs;
use super::{Failure, show};
use crate::config::keys::{Default, Key};
use crate::config::{self, Config, Setting, Source, no_effect};

/// Runs the command.
pub fn run(args: &ConfigArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let loaded =
        config::from_process(args.settings.file.as_deref(), &args.settings.overrides).map_err(Failure::Config)?;
    for notice in &loaded.notices {
        eprintln!("skerry: {notice}");
    }
    if args.json {
        as_json(&loaded.config, args.all, out)?;
    } else if args.markdown {
        as_markdown(args.all, out)?;
    } else {
        as_table(&loaded.config, args.all, out)?;
    }
    Ok(())
}

fn as_json(config: &Config, all: bool, out: &mut dyn Write) -> io::Result<()> {
    let used = config.settings.iter().map(|setting| {
        let key = setting.key;
        json!({
            "name": setting.name,
            "value": setting.text,
            "source": setting.source.to_string(),
            "default": key.default.text(),
            "type": key.type_name,
            "allowed": key.allowed(),
            "topic_name": key.topic,
            "variable": setting.variable(),
            "effect": true,
            "doc": key.doc,
        })
    });
    let idle = no_effect::all()
        .filter(|_| all)
        .map(|(name, why)| json!({ "name": name, "effect": false, "doc": format!("No effect: {why}.") }));
    let list: Vec<_> = used.chain(idle).collect();
    serde_json::to_writer_pretty(&mut *out, &list)?;
    writeln!(out)
}

fn as_table(config: &Config, all: bool, out: &mut dyn Write) -> io::Result<()> {
    let value = |setting: &Setting| match (&setting.text, setting.key.default) {
        (Some(text), _) => text.clone(),
        (None, Default::Words(words)) => format!("({words})"),
        (None, Default::Text(text)) => text.into(),
    };
    for setting in &config.settings {
        let from = match &setting.source {
            Source::Default => String::new(),
            other => format!("   [{other}]"),
        };
        writeln!(out, "{}={}{from}", setting.name, value(setting))?;
        wrapped(setting.key.doc, out)?;
    }
    if all {
        writeln!(out, "\nWithout effect:")?;
        show::table(
            out,
            &["NAME", "WHY"],
            no_effect::all().map(|(name, why)| vec![name.into(), why.into()]),
        )?;
    }
    Ok(())
}

/// The text indented, in lines that fit a terminal.
fn wrapped(text: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut column = 0;
    for word in text.split(' ') {
        if column > 0 && column + 1 + word.len() > 96 {
            writeln!(out)?;
            column = 0;
        }
        write!(out, "{}{word}", if column == 0 { "    " } else { " " })?;
        column += if column == 0 { 4 } else { 1 } + word.len();
    }
    writeln!(out)
}

fn as_markdown(all: bool, out: &mut dyn Write) -> io::Result<()> {
    let default = |key: &Key| match key.default {
        Default::Text(text) => format!("`{text}`"),
        Default::Words(words) => words.into(),
    };
    writeln!(out, "| setting | default | allowed | what it does |\n|---|---|---|---|")?;
    for key in config::keys::KEYS {
        let topic = key
            .topic
            .map(|name| format!(" For topics: `{name}`."))
            .unwrap_or_default();
        let allowed = key.allowed().replace('|', "\\|");
        writeln!(
            out,
            "| `{}` | {} | {allowed} | {}{topic} |",
            key.name,
            default(key),
            key.doc
        )?;
    }
    if all {
        writeln!(out, "\n| setting without effect | why |\n|---|---|")?;
        for (name, why) in no_effect::all() {
            writeln!(out, "| `{name}` | {why} |")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn printed(print: impl Fn(&Config, &mut dyn Write) -> io::Result<()>) -> String {
        let config = Config::with(Path::new("/data"), &[("num.partitions", "3")]).unwrap();
        let mut out = Vec::new();
        print(&config, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_setting_is_in_every_listing() {
        let table = printed(|config, out| as_table(config, false, out));
        let json = printed(|config, out| as_json(config, false, out));
        let markdown = printed(|_, out| as_markdown(false, out));
        for key in config::keys::KEYS {
            assert!(
                table.contains(&format!("\n{}=", key.name)) || table.starts_with(key.name),
                "{}",
                key.name
            );
            assert!(json.contains(&format!("\"name\": \"{}\"", key.name)), "{}", key.name);
            assert!(markdown.contains(&format!("\n| `{}` |", key.name)), "{}", key.name);
        }
    }

    #[test]
    fn the_listing_tells_value_and_source() {
        let table = printed(|config, out| as_table(config, true, out));
        assert!(table.contains("num.partitions=3   [--override]\n    Partitions of a topic"));
        assert!(table.contains("broker.rack=(none)\n"));
        assert!(table.contains("num.io.threads"));
        assert!(table.lines().all(|line| line.len() <= 260));
    }
}
