// This file holds what the handshakes of several providers share.
import type { Handshake, HandshakeResult, ReceivedRequest, SourceResponse } from '../receive/source.ts'
import { isSameSecret, refusal } from './signature.ts'

/** Meta and Strava send shorter challenges. A longer one is not echoed. */
const CHALLENGE_MAX = 1_000

/** `createHubHandshake` answers the GET with which Meta and Strava verify an address. Both send the token; each expects
    another response. */
export function createHubHandshake(
  verifyTokens: readonly string[],
  answer: (challenge: string) => SourceResponse,
): Handshake {
  return {
    verified: false,
    answer: (request) => (request.method === 'GET' ? handleChallenge(request, verifyTokens, answer) : undefined),
  }
}

function handleChallenge(
  { url }: ReceivedRequest,
  verifyTokens: readonly string[],
  answer: (challenge: string) => SourceResponse,
): HandshakeResult {
  const query = url.searchParams
  const challenge = query.get('hub.challenge') ?? ''
  if (query.get('hub.mode') !== 'subscribe' || challenge === '' || challenge.length > CHALLENGE_MAX) {
    return refuseHandshake(
      'A GET must be a handshake with hub.mode, hub.challenge and hub.verify_token.',
      'Make sure that only the provider calls this URL.',
    )
  }
  if (!isSameSecret(query.get('hub.verify_token') ?? '', verifyTokens)) {
    return refuseHandshake('The verify token is wrong.', 'Compare verifyToken with the one set at the provider.')
  }
  return { kind: 'answer', answer: answer(challenge) }
}

export function refuseHandshake(message: string, fix: string): HandshakeResult {
  return { kind: 'refused', refusal: refusal('HANDSHAKE_REFUSED', message, fix) }
}
