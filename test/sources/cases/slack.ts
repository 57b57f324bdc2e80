// Valid requests of Slack, one of each kind, and the expected result of each fault.
import { createHmac } from 'node:crypto'
import type { ReceivedRequest } from '../../../src/receive/source.ts'
import { slack } from '../../../src/sources/slack.ts'
import { requestOf, type SourceCase } from '../faults.ts'

export const EVENT = JSON.stringify({
  type: 'event_callback',
  team_id: 'T123ABC456',
  event_id: 'Ev123ABC456',
  event_time: 1_768_478_398,
  event: { type: 'app_mention', user: 'U123', text: '<@U0LAN0Z89> is it?', channel: 'C123ABC456' },
})
export const COMMAND =
  'team_id=T123ABC456&channel_id=C2147483705&user_id=U2147483697&command=%2Fweather&text=94070&trigger_id=13345224609.738474920.8088930838d88f008e0'
export const CLICK = `payload=${encodeURIComponent(
  JSON.stringify({
    type: 'block_actions',
    team: { id: 'T123ABC456' },
    user: { id: 'U123' },
    channel: { id: 'C123' },
    trigger_id: '13.37.ab',
    actions: [{ action_id: 'approve' }],
  }),
)}`

export function signedRequest(body: string, secret: string, at: number): ReceivedRequest {
  const seconds = Math.floor(at / 1_000)
  const mac = createHmac('sha256', secret).update(`v0:${seconds}:${body}`).digest('hex')
  const type = body.startsWith('{') ? 'application/json' : 'application/x-www-form-urlencoded'
  const headers = {
    'content-type': type,
    'x-slack-signature': `v0=${mac}`,
    'x-slack-request-timestamp': String(seconds),
  }
  return requestOf({ body, headers })
}

function caseOf(name: string, body: string): SourceCase {
  return {
    name,
    build: (secret) => slack({ secret }),
    secret: '8f742231b10e8888abcd99yyyzzz85a5',
    wrongSecret: '8f742231b10e8888abcd99yyyzzz85a6',
    request: (secret, at) => signedRequest(body, secret, at),
    expected: {
      bodyChanged: 'SIGNATURE_WRONG',
      headerChanged: { 'x-slack-signature': 'SIGNATURE_WRONG', 'x-slack-request-timestamp': 'SIGNATURE_WRONG' },
      headerMissing: { 'x-slack-signature': 'SIGNATURE_MISSING', 'x-slack-request-timestamp': 'TIMESTAMP_MISSING' },
      wrongSecret: 'SIGNATURE_WRONG',
      old: 'TIMESTAMP_OLD',
      future: 'TIMESTAMP_IN_FUTURE',
      replayed: 'duplicate',
      contentType: 'accepted',
    },
  }
}

export const cases: readonly SourceCase[] = [
  caseOf('slack event', EVENT),
  caseOf('slack slash command', COMMAND),
  caseOf('slack interaction', CLICK),
]
