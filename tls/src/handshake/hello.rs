//! What a server makes of a ClientHello: version, suite, group, scheme, and whether it must ask again.

use super::{Input, State, Turn};
use crate::cause::Cause;
use crate::crypto::Provider;
use crate::state::StateId;

/// Server: nothing has come yet.
#[derive(Debug)]
pub struct AwaitClientHello;

impl AwaitClientHello {
    /// The hello decides which machine goes on.
    pub fn on<P: Provider>(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let _ = turn;
        Err(input.out_of_sequence(StateId::AwaitClientHello))
    }
}
