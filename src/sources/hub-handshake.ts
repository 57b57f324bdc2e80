// The GET by which Meta and Strava ask whether an address wants their events: both send the token, each wants another answer.
import type { Handshake, HandshakeResult, ReceivedRequest, SourceAnswer } from '../receive/source.ts'
import { isSameSecret, refusal } from './signature.ts'

/** What they send is shorter; what is longer is echoed to nobody. */
const CHALLENGE_MAX = 1_000

export function hubHandshake(verifyTokens: readonly string[], answer: (challenge: string) => SourceAnswer): Handshake {
  return {
    verified: false,
    answer: (request) => (request.method === 'GET' ? greeting(request, verifyTokens, answer) : undefined),
  }
}

function greeting(
  { url }: ReceivedRequest,
  verifyTokens: readonly string[],
  answer: (challenge: string) => SourceAnswer,
): HandshakeResult {
  const asked = url.searchParams
  const challenge = asked.get('hub.challenge') ?? ''
  if (asked.get('hub.mode') !== 'subscribe' || challenge === '' || challenge.length > CHALLENGE_MAX) {
    return refused(
      'A GET is for the handshake: hub.mode, hub.challenge, hub.verify_token.',
      'Only the provider is to call this address.',
    )
  }
  if (!isSameSecret(asked.get('hub.verify_token') ?? '', verifyTokens)) {
    return refused(
      'The verify token is not that of the source.',
      'Compare verifyToken with what was given to the provider.',
    )
  }
  return { kind: 'answer', answer: answer(challenge) }
}

function refused(what: string, fix: string): HandshakeResult {
  return { kind: 'refused', refusal: refusal('HANDSHAKE_REFUSED', what, fix) }
}
