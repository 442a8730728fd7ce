//! Kafka's error codes, with what each means.

use core::fmt;

/// An error code on the wire. Codes that are not known here keep their number.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ErrorCode(pub i16);

/// One line per code: number, Kafka's name, whether the same request may succeed when it is sent again, meaning.
macro_rules! codes {
    ($($code:literal $name:ident $retriable:ident $message:literal;)*) => {
        impl ErrorCode {
            $(#[doc = $message] pub const $name: Self = Self($code);)*

            /// Every code that is known, by rising number.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            const fn line(self) -> Option<(&'static str, bool, &'static str)> {
                match self.0 {
                    $($code => Some((stringify!($name), codes!(@$retriable), $message)),)*
                    _ => None,
                }
            }
        }
    };
    (@retriable) => { true };
    (@final) => { false };
}

impl ErrorCode {
    /// Whether this is no error.
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.0 == Self::NONE.0
    }

    /// Whether the same request may succeed when it is sent again; false for an unknown code.
    #[must_use]
    pub const fn is_retriable(self) -> bool {
        matches!(self.line(), Some((_, true, _)))
    }

    /// Kafka's name, or `None` for an unknown code.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self.line() {
            Some((name, _, _)) => Some(name),
            None => None,
        }
    }

    /// What it means, in one sentence.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self.line() {
            Some((_, _, message)) => message,
            None => "An error code that is not known here.",
        }
    }

    /// `Ok` for no error, else the error: for `?` in clients.
    pub const fn ok(self) -> Result<(), Self> {
        if self.is_none() { Ok(()) } else { Err(self) }
    }
}

/// Kafka's name, or the number.
impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "error code {}", self.0),
        }
    }
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl core::error::Error for ErrorCode {}

codes! {
    -1 UNKNOWN_SERVER_ERROR final "The broker met an error that it has no name for.";
    0 NONE final "No error.";
    1 OFFSET_OUT_OF_RANGE final "The offset is not within the partition's log.";
    2 CORRUPT_MESSAGE retriable "A record batch failed its checksum, has a wrong size or breaks its format.";
    3 UNKNOWN_TOPIC_OR_PARTITION retriable "There is no such topic or partition here.";
    4 INVALID_FETCH_SIZE final "The fetch asks for an impossible number of bytes.";
    5 LEADER_NOT_AVAILABLE retriable "The partition has no leader at the moment.";
    6 NOT_LEADER_OR_FOLLOWER retriable "This broker does not lead the partition, or holds no replica of it.";
    7 REQUEST_TIMED_OUT retriable "The request took longer than it allowed.";
    8 BROKER_NOT_AVAILABLE final "The broker is not available.";
    9 REPLICA_NOT_AVAILABLE retriable "The replica that was asked for is not available.";
    10 MESSAGE_TOO_LARGE final "The batch is larger than the topic allows.";
    11 STALE_CONTROLLER_EPOCH final "The controller has moved on to a later epoch.";
    12 OFFSET_METADATA_TOO_LARGE final "The text that came with a committed offset is too long.";
    13 NETWORK_EXCEPTION retriable "The connection broke before the reply was read.";
    14 COORDINATOR_LOAD_IN_PROGRESS retriable "The coordinator is still loading its state.";
    15 COORDINATOR_NOT_AVAILABLE retriable "The coordinator is not available.";
    16 NOT_COORDINATOR retriable "This broker does not coordinate the group.";
    17 INVALID_TOPIC_EXCEPTION final "The topic's name is not allowed.";
    18 RECORD_LIST_TOO_LARGE final "The batches are larger together than a segment.";
    19 NOT_ENOUGH_REPLICAS retriable "Too few replicas are in sync to take the write.";
    20 NOT_ENOUGH_REPLICAS_AFTER_APPEND retriable "The write was taken, but by fewer replicas than required.";
    21 INVALID_REQUIRED_ACKS final "The value of acks is none of -1, 0 and 1.";
    22 ILLEGAL_GENERATION final "The group is not in the generation that the member named.";
    23 INCONSISTENT_GROUP_PROTOCOL final "The member's protocols have nothing in common with the group's.";
    24 INVALID_GROUP_ID final "The group id is not allowed.";
    25 UNKNOWN_MEMBER_ID final "The group has no such member.";
    26 INVALID_SESSION_TIMEOUT final "The session timeout is outside the broker's bounds.";
    27 REBALANCE_IN_PROGRESS final "The group is rebalancing: join it again.";
    28 INVALID_COMMIT_OFFSET_SIZE final "The offsets to commit are larger than the broker takes.";
    29 TOPIC_AUTHORIZATION_FAILED final "The client may not use this topic.";
    30 GROUP_AUTHORIZATION_FAILED final "The client may not use this group.";
    31 CLUSTER_AUTHORIZATION_FAILED final "The client may not do this to the cluster.";
    32 INVALID_TIMESTAMP final "A record's timestamp is out of the allowed range.";
    33 UNSUPPORTED_SASL_MECHANISM final "The broker does not know this SASL mechanism.";
    34 ILLEGAL_SASL_STATE final "The request is not valid in this state of SASL authentication.";
    35 UNSUPPORTED_VERSION final "The broker does not know this version of the API.";
    36 TOPIC_ALREADY_EXISTS final "There is a topic of this name.";
    37 INVALID_PARTITIONS final "The number of partitions is not allowed.";
    38 INVALID_REPLICATION_FACTOR final "The replication factor is not possible here.";
    39 INVALID_REPLICA_ASSIGNMENT final "The assignment of replicas is not possible here.";
    40 INVALID_CONFIG final "A setting is unknown or its value is not allowed.";
    41 NOT_CONTROLLER retriable "This broker is not the controller.";
    42 INVALID_REQUEST final "The request contradicts itself or asks for what is not offered.";
    43 UNSUPPORTED_FOR_MESSAGE_FORMAT final "The log's message format cannot do this.";
    44 POLICY_VIOLATION final "The request breaks a policy of this cluster.";
    45 OUT_OF_ORDER_SEQUENCE_NUMBER final "The batch does not follow the producer's last one.";
    46 DUPLICATE_SEQUENCE_NUMBER final "The batch was written before.";
    47 INVALID_PRODUCER_EPOCH final "The producer's epoch is older than the newest one seen.";
    48 INVALID_TXN_STATE final "The transaction is in no state for this.";
    49 INVALID_PRODUCER_ID_MAPPING final "The producer id does not belong to this transactional id.";
    50 INVALID_TRANSACTION_TIMEOUT final "The transaction timeout is over the broker's limit.";
    51 CONCURRENT_TRANSACTIONS retriable "An earlier change of the same transaction is still under way.";
    52 TRANSACTION_COORDINATOR_FENCED final "The transaction coordinator is no longer the current one.";
    53 TRANSACTIONAL_ID_AUTHORIZATION_FAILED final "The client may not use this transactional id.";
    54 SECURITY_DISABLED final "No security features are configured.";
    55 OPERATION_NOT_ATTEMPTED final "The operation was not tried, since another of the same request failed.";
    56 KAFKA_STORAGE_ERROR retriable "The disk refused to read or to write.";
    57 LOG_DIR_NOT_FOUND final "There is no such log directory.";
    58 SASL_AUTHENTICATION_FAILED final "The credentials are wrong.";
    59 UNKNOWN_PRODUCER_ID final "Nothing is known of this producer id any more.";
    60 REASSIGNMENT_IN_PROGRESS final "The partition is being reassigned.";
    61 DELEGATION_TOKEN_AUTH_DISABLED final "Delegation tokens are not in use.";
    62 DELEGATION_TOKEN_NOT_FOUND final "There is no such delegation token.";
    63 DELEGATION_TOKEN_OWNER_MISMATCH final "The delegation token belongs to someone else.";
    64 DELEGATION_TOKEN_REQUEST_NOT_ALLOWED final "Delegation tokens are not handed out over this kind of connection.";
    65 DELEGATION_TOKEN_AUTHORIZATION_FAILED final "The client may not use delegation tokens.";
    66 DELEGATION_TOKEN_EXPIRED final "The delegation token has expired.";
    67 INVALID_PRINCIPAL_TYPE final "The principal's type is not known.";
    68 NON_EMPTY_GROUP final "The group still has members.";
    69 GROUP_ID_NOT_FOUND final "There is no such group.";
    70 FETCH_SESSION_ID_NOT_FOUND retriable "There is no such fetch session.";
    71 INVALID_FETCH_SESSION_EPOCH retriable "The fetch session is at another epoch.";
    72 LISTENER_NOT_FOUND retriable "The leader has no listener of this name.";
    73 TOPIC_DELETION_DISABLED final "Topics may not be deleted here.";
    74 FENCED_LEADER_EPOCH retriable "The leader epoch that the client knows is older than the broker's.";
    75 UNKNOWN_LEADER_EPOCH retriable "The leader epoch that the client knows is newer than the broker's.";
    76 UNSUPPORTED_COMPRESSION_TYPE final "The client does not know how this batch is compressed.";
    77 STALE_BROKER_EPOCH final "The broker has been registered again since.";
    78 OFFSET_NOT_AVAILABLE retriable "The leader does not know its high watermark yet.";
    79 MEMBER_ID_REQUIRED final "Join again with the member id that came with this error.";
    80 PREFERRED_LEADER_NOT_AVAILABLE retriable "The preferred leader is not available.";
    81 GROUP_MAX_SIZE_REACHED final "The group has as many members as it may have.";
    82 FENCED_INSTANCE_ID final "Another member has taken over this group instance id.";
    83 ELIGIBLE_LEADERS_NOT_AVAILABLE retriable "No replica that could lead is available.";
    84 ELECTION_NOT_NEEDED retriable "The partition has the right leader already.";
    85 NO_REASSIGNMENT_IN_PROGRESS final "No reassignment is under way.";
    86 GROUP_SUBSCRIBED_TO_TOPIC final "The group is subscribed to the topic: its offsets stay.";
    87 INVALID_RECORD final "A record breaks a rule of its topic or of its format.";
    88 UNSTABLE_OFFSET_COMMIT retriable "Offsets of the partition belong to a transaction that has not ended.";
    89 THROTTLING_QUOTA_EXCEEDED retriable "The client went over its quota of changes.";
    90 PRODUCER_FENCED final "A newer producer with the same transactional id has taken over.";
    91 RESOURCE_NOT_FOUND final "The request names something that is not there.";
    92 DUPLICATE_RESOURCE final "The request names the same thing twice.";
    93 UNACCEPTABLE_CREDENTIAL final "The credential does not meet the requirements.";
    94 INCONSISTENT_VOTER_SET final "The two sides know different sets of voters.";
    95 INVALID_UPDATE_VERSION final "The version of the update is not valid.";
    96 FEATURE_UPDATE_FAILED final "The features could not be updated.";
    97 PRINCIPAL_DESERIALIZATION_FAILURE final "The forwarded principal could not be read.";
    98 SNAPSHOT_NOT_FOUND final "There is no such snapshot.";
    99 POSITION_OUT_OF_RANGE final "The position is not within the snapshot.";
    100 UNKNOWN_TOPIC_ID retriable "There is no topic with this id here.";
    101 DUPLICATE_BROKER_REGISTRATION final "A broker of this id is registered already.";
    102 BROKER_ID_NOT_REGISTERED final "No broker of this id is registered.";
    103 INCONSISTENT_TOPIC_ID retriable "The log belongs to a topic with another id.";
    104 INCONSISTENT_CLUSTER_ID final "The request is meant for another cluster.";
    105 TRANSACTIONAL_ID_NOT_FOUND final "There is no such transactional id.";
    106 FETCH_SESSION_TOPIC_ID_ERROR retriable "The fetch session began with the other way of naming topics.";
    107 INELIGIBLE_REPLICA final "The replica may not join those in sync.";
    108 NEW_LEADER_ELECTED final "The change made the partition's leadership move.";
    109 OFFSET_MOVED_TO_TIERED_STORAGE final "The offset is only in tiered storage.";
    110 FENCED_MEMBER_EPOCH final "The coordinator has set this member aside: join the group anew.";
    111 UNRELEASED_INSTANCE_ID final "Another member still uses this group instance id.";
    112 UNSUPPORTED_ASSIGNOR final "The coordinator or the group does not know this assignor.";
    113 STALE_MEMBER_EPOCH final "The member's epoch is not its current one.";
    114 MISMATCHED_ENDPOINT_TYPE final "The request came to the other kind of endpoint.";
    115 UNSUPPORTED_ENDPOINT_TYPE final "This kind of endpoint is not known.";
    116 UNKNOWN_CONTROLLER_ID final "There is no such controller.";
    117 UNKNOWN_SUBSCRIPTION_ID final "The telemetry subscription is not the current one.";
    118 TELEMETRY_TOO_LARGE final "The telemetry is larger than the broker takes.";
    119 INVALID_REGISTRATION final "The registration is not valid.";
    120 TRANSACTION_ABORTABLE final "The transaction met an error and has to be aborted.";
    121 INVALID_RECORD_STATE final "The record is in no state for this acknowledgement.";
    122 SHARE_SESSION_NOT_FOUND retriable "There is no such share session.";
    123 INVALID_SHARE_SESSION_EPOCH retriable "The share session is at another epoch.";
    124 FENCED_STATE_EPOCH final "The share group's state is at a later epoch.";
    125 INVALID_VOTER_KEY final "The voter's key is not the one that is known.";
    126 DUPLICATE_VOTER final "The voter is in the set already.";
    127 VOTER_NOT_FOUND final "The voter is not in the set.";
    128 INVALID_REGULAR_EXPRESSION final "The regular expression is not valid.";
    129 REBOOTSTRAP_REQUIRED final "The client's knowledge of the cluster is too old: start again from the bootstrap servers.";
    130 STREAMS_INVALID_TOPOLOGY final "The streams topology is not valid.";
    131 STREAMS_INVALID_TOPOLOGY_EPOCH final "The epoch of the streams topology is not valid.";
    132 STREAMS_TOPOLOGY_FENCED final "The streams topology is older than the group's.";
    133 SHARE_SESSION_LIMIT_REACHED retriable "There are as many share sessions as there may be.";
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn codes_run_without_a_hole() {
        for (code, place) in ErrorCode::ALL.iter().zip(-1_i16..) {
            assert_eq!(code.0, place);
            assert!(code.message().ends_with('.'));
        }
        assert_eq!(ErrorCode::ALL.len(), 135);
    }

    #[test]
    fn an_unknown_code_keeps_its_number() {
        assert_eq!(ErrorCode(999).to_string(), "error code 999");
        assert_eq!(ErrorCode(999).ok(), Err(ErrorCode(999)));
        assert_eq!(
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.to_string(),
            "UNKNOWN_TOPIC_OR_PARTITION"
        );
        assert!(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.is_retriable());
        assert!(!ErrorCode::UNKNOWN_MEMBER_ID.is_retriable());
    }
}
