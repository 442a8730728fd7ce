//! `meta.properties`: whose data directory this is. Kafka's file, Kafka's keys.
//!
//! Made at the first start, by writing another file, syncing it, renaming it and syncing the directory; never changed after that.

use core::fmt::Write as _;
use std::io::IoSlice;

use log::warn;
use skerry_core::wire::Uuid;
use skerry_net::host::{Disk, DiskError, OpenMode};

use super::metadata_log::sync_directory;

/// The file.
pub const META_PROPERTIES: &str = "meta.properties";
const NEW: &str = "meta.properties.new";
const DAMAGED: &str = "meta.properties.damaged";

/// Bytes that are read of it: it has a few short lines.
const FILE_BYTES_MAX: usize = 4096;

/// A cluster's id as clients see it: 22 characters of base64 where we made it.
pub type ClusterId = heapless::String<64>;

/// Why the broker does not start on this directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaError {
    /// It belongs to a broker of another number.
    OtherNode {
        /// `node.id` in the file.
        stored: i32,
        /// `node.id` in the configuration.
        configured: i32,
    },
    /// It is Apache Kafka's own, which a broker of another kind must not write to.
    Kafka,
    /// The disk failed.
    Disk(DiskError),
}

impl core::fmt::Display for MetaError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::OtherNode { stored, configured } => write!(
                f,
                "the data directory belongs to node.id {stored} ({META_PROPERTIES}), but node.id is {configured}: \
                 set node.id={stored}, or give another log.dirs"
            ),
            Self::Kafka => write!(
                f,
                "the data directory is Apache Kafka's ({META_PROPERTIES} has directory.id): give another log.dirs"
            ),
            Self::Disk(error) => write!(f, "{META_PROPERTIES}: {error}"),
        }
    }
}

impl core::error::Error for MetaError {}

impl From<DiskError> for MetaError {
    fn from(error: DiskError) -> Self {
        Self::Disk(error)
    }
}

/// Reads the file, or makes it with `fresh` as the cluster's id. A file that cannot be understood is kept aside and made anew, with one
/// line: it holds nothing that records depend on.
pub fn open<D: Disk>(disk: &mut D, node_id: i32, fresh: Uuid) -> Result<ClusterId, MetaError> {
    let mut bytes = [0; FILE_BYTES_MAX];
    let text = match read(disk, &mut bytes) {
        Ok(bytes) => Some(str::from_utf8(bytes).unwrap_or_default()),
        Err(DiskError::NotFound) => None,
        Err(error) => return Err(error.into()),
    };
    if let Some(text) = text {
        // Kafka writes it since 3.7. Its records could be read here, but not what it knows of them, nor it again what is done to them.
        if text.lines().any(|line| line.starts_with("directory.id=")) {
            return Err(MetaError::Kafka);
        }
        if let Some((stored, cluster_id)) = parse(text) {
            if stored != node_id {
                return Err(MetaError::OtherNode {
                    stored,
                    configured: node_id,
                });
            }
            return Ok(cluster_id);
        }
        warn!("{META_PROPERTIES} cannot be understood; it is kept as {DAMAGED} and made anew with another cluster id");
        disk.rename(META_PROPERTIES, DAMAGED)?;
    }
    create(disk, node_id, fresh)
}

fn read<'b, D: Disk>(disk: &mut D, bytes: &'b mut [u8]) -> Result<&'b [u8], DiskError> {
    let file = disk.open(META_PROPERTIES, OpenMode::Read)?;
    let read = disk.read_at(file, 0, bytes);
    disk.close(file);
    Ok(bytes.get(..read?).unwrap_or_default())
}

fn create<D: Disk>(disk: &mut D, node_id: i32, id: Uuid) -> Result<ClusterId, MetaError> {
    let mut cluster_id = ClusterId::new();
    let mut text = heapless::String::<256>::new();
    // 22 characters fit the one, three short lines the other.
    let _ = write!(cluster_id, "{id}");
    let _ = write!(text, "version=1\ncluster.id={cluster_id}\nnode.id={node_id}\n");
    let file = disk.open(NEW, OpenMode::Create)?;
    let written = disk
        .truncate(file, 0)
        .and_then(|()| disk.write_at(file, 0, &[IoSlice::new(text.as_bytes())]))
        .and_then(|bytes| {
            if bytes == text.len() {
                Ok(())
            } else {
                Err(DiskError::Full)
            }
        })
        .and_then(|()| disk.sync(file));
    disk.close(file);
    written?;
    disk.rename(NEW, META_PROPERTIES)?;
    sync_directory(disk)?;
    Ok(cluster_id)
}

/// Node and cluster; the node has the name `broker.id` in version 0.
fn parse(text: &str) -> Option<(i32, ClusterId)> {
    let value = |names: &[&str]| {
        text.lines().find_map(|line| {
            let (name, value) = line.split_once('=')?;
            names.contains(&name.trim()).then_some(value.trim())
        })
    };
    let node_id = value(&["node.id", "broker.id"])?.parse().ok()?;
    let cluster_id = value(&["cluster.id"])?;
    let cluster_id = ClusterId::try_from(cluster_id).ok()?;
    (!cluster_id.is_empty()).then_some((node_id, cluster_id))
}

#[cfg(test)]
mod tests {
    use super::super::mem_disk::MemDisk;
    use super::*;

    const ID: Uuid = Uuid([0x5A; 16]);
    const OTHER: Uuid = Uuid([1; 16]);

    #[test]
    fn made_once_and_kept() {
        let mut disk = MemDisk::default();
        let id = open(&mut disk, 1, ID).unwrap();
        assert_eq!(id, "WlpaWlpaWlpaWlpaWlpaWg");
        assert_eq!(open(&mut disk, 1, OTHER).unwrap(), id);
        let text = format!("version=1\ncluster.id={id}\nnode.id=1\n");
        assert_eq!(*disk.bytes(META_PROPERTIES), text.as_bytes());
        assert!(!disk.has(NEW));
        let other = MetaError::OtherNode {
            stored: 1,
            configured: 2,
        };
        assert_eq!(open(&mut disk, 2, OTHER), Err(other));
    }

    #[test]
    fn a_directory_of_kafka_itself_is_left_alone() {
        let mut disk = MemDisk::default();
        let text = "#\nnode.id=1\ndirectory.id=Z57EEFwh2mk5PBbaYUOsVg\nversion=1\ncluster.id=JhiFHK_eRg2gSwCfncUMSA\n";
        disk.put(META_PROPERTIES, text.as_bytes());
        assert_eq!(open(&mut disk, 1, ID), Err(MetaError::Kafka));
        assert_eq!(*disk.bytes(META_PROPERTIES), text.as_bytes());
    }

    #[test]
    fn files_as_kafka_writes_them_are_read() {
        for text in [
            "#\n#Mon Nov 30 18:20:00 UTC 2026\nversion=1\nnode.id=5\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\n",
            "version=0\r\nbroker.id = 5\r\ncluster.id = MkU3OEVBNTcwNTJENDM2Qg\r\n",
        ] {
            let mut disk = MemDisk::default();
            disk.put(META_PROPERTIES, text.as_bytes());
            assert_eq!(open(&mut disk, 5, OTHER).as_deref(), Ok("MkU3OEVBNTcwNTJENDM2Qg"));
        }
    }

    #[test]
    fn a_file_that_cannot_be_understood_is_put_aside() {
        for text in [
            &b""[..],
            b"version=1\n",
            b"node.id=x\ncluster.id=a\n",
            b"node.id=1\ncluster.id=\n",
            &[0xFF; 100],
        ] {
            let mut disk = MemDisk::default();
            disk.put(META_PROPERTIES, text);
            assert_eq!(open(&mut disk, 1, ID).as_deref(), Ok("WlpaWlpaWlpaWlpaWlpaWg"));
            assert_eq!(*disk.bytes(DAMAGED), text);
        }
    }

    #[test]
    fn a_start_that_was_cut_leaves_nothing_in_the_way() {
        let mut disk = MemDisk::default();
        disk.put(NEW, &[b'x'; 300]);
        let id = open(&mut disk, 1, ID).unwrap();
        assert_eq!(open(&mut disk, 1, OTHER).unwrap(), id);
        disk = MemDisk::default();
        disk.room = Some(10);
        assert_eq!(open(&mut disk, 1, ID), Err(MetaError::Disk(DiskError::Full)));
        assert!(!disk.has(META_PROPERTIES));
    }
}
