//! OffsetForLeaderEpoch (key 23): where an epoch of a partition ends (KIP-320), for a client that checks whether what it read
//! still stands.
//!
//! Answered in versions 2–4. 2 current leader epoch · 3 replica id · 4 flexible.

use core::cell::Cell;

use skerry_core::api::offset_for_leader_epoch::{
    EpochEndOffset, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse, OffsetForLeaderPartition,
    OffsetForLeaderTopic, OffsetForLeaderTopicResult,
};
use skerry_core::error_code::ErrorCode;
use skerry_core::header::RequestHeader;
use skerry_core::wire::{Array, Full, Items};
use skerry_net::host::Host;

use super::{Context, Out, Outcome};
use crate::state::State;

/// Handles one request. Cost: a lookup in each partition's epoch cache, no disk.
pub fn handle<H: Host>(
    cx: &mut Context<'_, H>,
    header: &RequestHeader<'_>,
    request: &OffsetForLeaderEpochRequest<'_>,
    out: &mut Out<'_>,
) -> Outcome {
    let reply = Reply {
        state: cx.state,
        request,
        topic: Cell::new(OffsetForLeaderTopic::default()),
    };
    out.reply(
        header,
        &OffsetForLeaderEpochResponse {
            topics: Array::Items(&reply, 0),
            ..OffsetForLeaderEpochResponse::default()
        },
    )
}

struct Reply<'r, 'f> {
    state: &'r State,
    request: &'r OffsetForLeaderEpochRequest<'f>,
    topic: Cell<OffsetForLeaderTopic<'f>>,
}

impl<'a, 'f: 'a> Items<'a, OffsetForLeaderTopicResult<'a>> for Reply<'_, 'f> {
    fn count(&'a self, _: usize) -> usize {
        self.request.topics.len()
    }

    fn each(
        &'a self,
        _: usize,
        emit: &mut dyn FnMut(&OffsetForLeaderTopicResult<'a>) -> Result<(), Full>,
    ) -> Result<(), Full> {
        for topic in self.request.topics {
            self.topic.set(topic);
            emit(&OffsetForLeaderTopicResult {
                topic: topic.topic,
                partitions: Array::Items(self, 0),
            })?;
        }
        Ok(())
    }
}

impl<'a, 'f: 'a> Items<'a, EpochEndOffset> for Reply<'_, 'f> {
    fn count(&'a self, _: usize) -> usize {
        self.topic.get().partitions.len()
    }

    fn each(&'a self, _: usize, emit: &mut dyn FnMut(&EpochEndOffset) -> Result<(), Full>) -> Result<(), Full> {
        let topic = self.topic.get();
        let topic_ix = self.state.topics.by_name(topic.topic);
        for partition in topic.partitions {
            let ix = topic_ix.and_then(|t| self.state.topics.partition(t, partition.partition));
            emit(&end_of(self.state, &partition, ix))?;
        }
        Ok(())
    }
}

fn end_of(state: &State, asked: &OffsetForLeaderPartition, ix: Option<crate::ids::PartitionIx>) -> EpochEndOffset {
    let none = EpochEndOffset {
        partition: asked.partition,
        leader_epoch: -1,
        end_offset: -1,
        ..EpochEndOffset::default()
    };
    let Some(ix) = ix else {
        return EpochEndOffset {
            error_code: ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
            ..none
        };
    };
    if let Some(error_code) = state.epoch_error(asked.current_leader_epoch) {
        return EpochEndOffset { error_code, ..none };
    }
    let end = state.logs.end_offset_for_epoch(ix, asked.leader_epoch);
    EpochEndOffset {
        leader_epoch: end.leader_epoch,
        end_offset: end.end_offset,
        ..none
    }
}
