//! Fetch (key 1).
//!
//! Versions 4–17, flexible from 12. 4 has isolation levels and record format v2; 5 log start offsets; 7 sessions (KIP-227);
//! 9 leader epochs (KIP-320); 11 racks (KIP-392); 12 divergence (KIP-595); 13 topic ids in place of names (KIP-516); 15 moves
//! the replica id to a tag (KIP-903); 16 names new leaders' endpoints (KIP-951); 17 directory ids (KIP-853).

use crate::error_code::ErrorCode;
use crate::wire::{Array, Records, Uuid, message};

message! {
    /// Reads records from partitions, waiting for them up to a time.
    FetchRequest<'a>: versions [4..=17], flexible [12..] {
        /// The cluster that the client means, or null.
        cluster_id: Option<&'a str> [12..] null [12..] tag 0;
        /// The broker id of a follower, or −1 for a client.
        replica_id: i32 [0..=14] = -1;
        /// Which replica fetches (version 15 and later).
        replica_state: ReplicaState [15..] tag 1;
        /// How long to wait for `min_bytes`, in milliseconds.
        max_wait_ms: i32 [0..];
        /// Bytes worth answering with before the time is up.
        min_bytes: i32 [0..];
        /// Most bytes in the reply; the first batch may go over it (KIP-74).
        max_bytes: i32 [3..] = i32::MAX;
        /// 0 reads everything, 1 only what was committed.
        isolation_level: i8 [4..];
        /// The fetch session, or 0 for none.
        session_id: i32 [7..];
        /// The request's place in its session: 0 asks for a new one, −1 wants none (or closes it).
        session_epoch: i32 [7..] = -1;
        /// The topics.
        topics: Array<'a, FetchTopic<'a>> [0..];
        /// Partitions that leave the session.
        forgotten_topics_data: Array<'a, ForgottenTopic<'a>> [7..];
        /// The consumer's rack, for reading from a near replica.
        rack_id: &'a str [11..];
    }
}

message! {
    /// Which replica fetches.
    ReplicaState {
        /// The broker id of a follower, or −1 for a client.
        replica_id: i32 [15..] = -1;
        /// The follower's epoch, or −1.
        replica_epoch: i64 [15..] = -1;
    }
}

message! {
    /// One topic's share of a [`FetchRequest`].
    FetchTopic<'a> {
        /// The topic's name.
        topic: &'a str [0..=12];
        /// The topic's id.
        topic_id: Uuid [13..];
        /// The partitions.
        partitions: Array<'a, FetchPartition> [0..];
    }
}

message! {
    /// From where one partition is read, and how much.
    FetchPartition {
        /// The partition.
        partition: i32 [0..];
        /// The leader epoch that the client knows, or −1: an older or newer one is refused (KIP-320).
        current_leader_epoch: i32 [9..] = -1;
        /// The first offset wanted.
        fetch_offset: i64 [0..];
        /// The epoch of the last record that was read, or −1.
        last_fetched_epoch: i32 [12..] = -1;
        /// The follower's first offset; −1 from a client.
        log_start_offset: i64 [5..] = -1;
        /// Most bytes from this partition; its first batch may go over it (KIP-74).
        partition_max_bytes: i32 [0..];
        /// The follower's log directory.
        replica_directory_id: Uuid [17..] tag 0;
    }
}

message! {
    /// Partitions that leave the session.
    ForgottenTopic<'a> {
        /// The topic's name.
        topic: &'a str [7..=12];
        /// The topic's id.
        topic_id: Uuid [13..];
        /// The partitions.
        partitions: Array<'a, i32> [7..];
    }
}

message! {
    /// Records, and where each partition's log starts and ends.
    FetchResponse<'a>: versions [4..=17], flexible [12..] {
        /// How long a quota held the request back, in milliseconds; 0 for not at all.
        throttle_time_ms: i32 [1..];
        /// What went wrong, if anything.
        error_code: ErrorCode [7..];
        /// The session that was opened or is used, or 0 for none.
        session_id: i32 [7..];
        /// The topics.
        responses: Array<'a, FetchableTopicResponse<'a>> [0..];
        /// Where the leaders that are named can be reached.
        node_endpoints: Array<'a, NodeEndpoint<'a>> [16..] tag 0;
    }
}

message! {
    /// One topic's share of a [`FetchResponse`].
    FetchableTopicResponse<'a> {
        /// The topic's name.
        topic: &'a str [0..=12];
        /// The topic's id.
        topic_id: Uuid [13..];
        /// The partitions.
        partitions: Array<'a, PartitionData<'a>> [0..];
    }
}

message! {
    /// One partition's records.
    PartitionData<'a> {
        /// The partition.
        partition_index: i32 [0..];
        /// What went wrong, if anything.
        error_code: ErrorCode [0..];
        /// The end of what clients may read.
        high_watermark: i64 [0..];
        /// The end of what a committed reader may read, or −1.
        last_stable_offset: i64 [4..] = -1;
        /// The first offset that the log still has, or −1 when not known.
        log_start_offset: i64 [5..] = -1;
        /// Where the follower's log parts from this one.
        diverging_epoch: EpochEndOffset [12..] tag 0;
        /// The leader to turn to, with NOT_LEADER_OR_FOLLOWER or FENCED_LEADER_EPOCH.
        current_leader: LeaderIdAndEpoch [12..] tag 1;
        /// The snapshot to fetch instead, when the offset lies before the log.
        snapshot_id: SnapshotId [12..] tag 2;
        /// Aborted transactions among the records, or null for a reader of everything.
        aborted_transactions: Array<'a, AbortedTransaction> [4..] null [4..];
        /// The replica to read from next, or −1 for this one.
        preferred_read_replica: i32 [11..] = -1;
        /// Whole batches; the first may begin before the offset asked for, the last may be cut.
        records: Records<'a> [0..] null [0..];
    }
}

message! {
    /// Where the client's log parts from the leader's.
    EpochEndOffset {
        /// The epoch.
        epoch: i32 [12..] = -1;
        /// The offset where it ended.
        end_offset: i64 [12..] = -1;
    }
}

message! {
    /// The leader to turn to instead.
    LeaderIdAndEpoch {
        /// The leader's id, or −1 when there is none.
        leader_id: i32 [12..] = -1;
        /// The leader's epoch, or −1 when not known.
        leader_epoch: i32 [12..] = -1;
    }
}

message! {
    /// A snapshot to fetch in place of records that are gone.
    SnapshotId {
        /// The offset where it ended.
        end_offset: i64 [0..] = -1;
        /// The epoch.
        epoch: i32 [0..] = -1;
    }
}

message! {
    /// A transaction whose records a committed reader leaves out.
    AbortedTransaction {
        /// Whose transaction it is.
        producer_id: i64 [4..];
        /// Its first offset.
        first_offset: i64 [4..];
    }
}

message! {
    /// Where a broker that is named as a leader can be reached.
    NodeEndpoint<'a> {
        /// The broker's id.
        node_id: i32 [16..];
        /// The host name or address to connect to.
        host: &'a str [16..];
        /// The port to connect to.
        port: i32 [16..];
        /// The broker's rack, or null.
        rack: Option<&'a str> [16..] null [16..];
    }
}
