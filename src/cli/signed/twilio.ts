// Signs for Twilio: the URL and the form fields. For other bodies it signs the URL with a hash of the body in it.
import { hash } from 'node:crypto'
import { JSON_TYPE, computeMac, type Signer } from './signed.ts'

const MAC = { algorithm: 'sha1', encoding: 'base64' } as const
const FORM_TYPE = { 'content-type': 'application/x-www-form-urlencoded' } as const

export const twilio: Signer = ({ type = 'message.received', data, id, secret, url, sender }) => {
  // The SID identifies a message, and SIDs of Twilio have 32 hexadecimal digits.
  const sid = hash('sha256', id).slice(0, 32)
  const [, status = 'received'] = type.split('.')
  const example = new URLSearchParams({
    MessageSid: `SM${sid}`,
    SmsStatus: status,
    AccountSid: 'ACtest',
    Body: 'A test.',
  })
  const body = data ?? Buffer.from(example.toString())
  const isJson = body[0] === 0x7b || body[0] === 0x5b
  const called = new URL(url)
  if (isJson) called.searchParams.set('bodySHA256', hash('sha256', body, 'hex'))
  const address = sender?.url === undefined ? called.href : sender.url + called.search
  const signature = computeMac(secret, [address, isJson ? '' : toSignedFields(body)], MAC)
  const headers = { 'x-twilio-signature': signature, 'i-twilio-idempotency-token': id }
  return { url: called, headers: { ...(isJson ? JSON_TYPE : FORM_TYPE), ...headers }, body }
}

/** Sorts by name; repeated values of one name appear once. */
function toSignedFields(body: Uint8Array): string {
  const form = new URLSearchParams(Buffer.from(body).toString())
  const names = [...new Set(form.keys())].toSorted()
  return names.flatMap((name) => [...new Set(form.getAll(name))].toSorted().map((value) => name + value)).join('')
}
