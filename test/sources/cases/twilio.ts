// Valid requests of Twilio, with a form, with JSON and by GET, and the expected result of each fault.
import { createHash, createHmac } from 'node:crypto'
import twilioPackage from 'twilio'
import type { ReceivedRequest } from '../../../src/receive/source.ts'
import { twilio } from '../../../src/sources/twilio.ts'
import { requestOf, type SourceCase } from '../faults.ts'

const URL = 'https://hooks.example.com/in/twilio'
const FIELDS = {
  AccountSid: 'AC00000000000000000000000000000001',
  Body: 'Hello, world & all',
  From: 'whatsapp:+14155550100',
  MessageSid: 'SM00000000000000000000000000000001',
  NumMedia: '0',
  ProfileName: '',
  SmsStatus: 'received',
}
const TOKEN = { secret: '12345678901234567890123456789012', wrongSecret: '12345678901234567890123456789013' }
const HEADER = 'x-twilio-signature'
const EXPECTED = {
  headerChanged: { [HEADER]: 'SIGNATURE_WRONG' },
  headerMissing: { [HEADER]: 'SIGNATURE_MISSING' },
  wrongSecret: 'SIGNATURE_WRONG',
  old: 'accepted',
  future: 'accepted',
  replayed: 'duplicate',
} as const

export function signedForm(
  secret: string,
  fields: Readonly<Record<string, string>> = FIELDS,
  url: string = URL,
): ReceivedRequest {
  const names = Object.keys(fields).toSorted()
  const content = url + names.map((name) => name + (fields[name] ?? '')).join('')
  return requestOf({
    url,
    body: new URLSearchParams(fields).toString(),
    headers: {
      'content-type': 'application/x-www-form-urlencoded; charset=UTF-8',
      [HEADER]: createHmac('sha1', secret).update(content).digest('base64'),
    },
  })
}

export function signedJson(secret: string, body: string): ReceivedRequest {
  const url = `${URL}?bodySHA256=${createHash('sha256').update(body).digest('hex')}`
  return requestOf({ url, body, headers: { [HEADER]: createHmac('sha1', secret).update(url).digest('base64') } })
}

const STREAM = JSON.stringify([
  { specversion: '1.0', type: 'com.twilio.messaging.message.delivered', id: 'EZ1', data: { accountSid: 'AC1' } },
  { specversion: '1.0', type: 'com.twilio.messaging.message.read', id: 'EZ2', time: '2026-01-15T11:00:00Z', data: {} },
])

/** Names and values are signed without separators: requests that Twilio's own verifier treats as equal are not forgeries. */
function isForgedForm(request: ReceivedRequest): boolean {
  const fields: Record<string, string | string[]> = {}
  const form = new URLSearchParams(Buffer.from(request.body).toString())
  for (const name of form.keys()) fields[name] = form.getAll(name)
  return !twilioPackage.validateRequest(TOKEN.secret, request.headers[HEADER] ?? '', request.url.href, fields)
}

export const cases: readonly SourceCase[] = [
  {
    name: 'twilio form',
    build: (secret) => twilio({ secret }),
    ...TOKEN,
    request: (secret) => signedForm(secret),
    expected: { ...EXPECTED, bodyChanged: 'SIGNATURE_WRONG', contentType: 'CONTENT_TYPE_WRONG' },
    isForged: isForgedForm,
  },
  {
    name: 'twilio JSON',
    build: (secret) => twilio({ secret }),
    ...TOKEN,
    request: (secret) => signedJson(secret, STREAM),
    expected: { ...EXPECTED, bodyChanged: 'SIGNATURE_WRONG', contentType: 'accepted' },
  },
  {
    name: 'twilio GET',
    build: (secret) => twilio({ secret }),
    ...TOKEN,
    request: (secret) => {
      const { headers, url } = signedForm(secret, {}, `${URL}?${new URLSearchParams(FIELDS).toString()}`)
      return { ...requestOf({ method: 'GET', url: url.href, body: '', headers }) }
    },
    expected: { ...EXPECTED, bodyChanged: [], contentType: 'accepted' },
    isForged: (request, genuine) => request.url.search !== genuine.url.search,
  },
]
