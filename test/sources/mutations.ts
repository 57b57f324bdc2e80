// Random changes of a genuine request: bytes and headers are set, inserted, removed, exchanged, repeated or invented.
import fc from 'fast-check'
import type { ReceivedRequest } from '../../src/receive/source.ts'

type Change = (request: ReceivedRequest) => ReceivedRequest

export function mutations(genuine: ReceivedRequest): fc.Arbitrary<ReceivedRequest> {
  const change = fc.oneof(
    { weight: 3, arbitrary: bytesChange(genuine) },
    { weight: 3, arbitrary: headerChange(genuine) },
    { weight: 1, arbitrary: wholeChange() },
  )
  return fc
    .array(change, { minLength: 1, maxLength: 4 })
    .map((changes) => changes.reduce((request, apply) => apply(request), genuine))
}

function bytesChange({ body }: ReceivedRequest): fc.Arbitrary<Change> {
  const at = fc.nat(Math.max(0, body.length - 1))
  return fc.oneof(
    textChange(at).map((apply) => onBody((text) => apply(text))),
    fc.uint8Array({ maxLength: 64 }).map((bytes): Change => (request) => ({ ...request, body: bytes })),
    fc.json().map((text) => onBody(() => text)),
  )
}

function headerChange({ headers }: ReceivedRequest): fc.Arbitrary<Change> {
  const name = fc.constantFrom(...Object.keys(headers))
  const value = fc.oneof(
    textChange(fc.nat(100)),
    fc.constantFrom('', ' ', ',', '=', '0', 'null', '__proto__').map((text) => () => text),
    fc.string({ maxLength: 80 }).map((text) => () => text),
    // A header that appears twice is joined like this.
    fc.string({ maxLength: 20 }).map((text) => (old: string) => `${old}, ${text}`),
    fc.constant((old: string) => old.toUpperCase()),
  )
  const set = fc.tuple(name, value).map(([key, apply]): Change => {
    // Space around a value is not transmitted.
    return (request) => {
      const changed = apply(request.headers[key] ?? '').trim()
      return { ...request, headers: { ...request.headers, [key]: changed } }
    }
  })
  const leaveOut = name.map((key): Change => (request) => {
    const { [key]: _, ...others } = request.headers
    return { ...request, headers: others }
  })
  return fc.oneof({ weight: 4, arbitrary: set }, { weight: 1, arbitrary: leaveOut })
}

function wholeChange(): fc.Arbitrary<Change> {
  return fc.oneof(
    fc.constantFrom('GET', 'PUT', 'OPTIONS', 'HEAD').map((method): Change => (request) => ({ ...request, method })),
    fc
      .constantFrom('text/plain', 'application/x-www-form-urlencoded', 'application/json; charset=x', '')
      .map((type): Change => (request) => ({ ...request, headers: { ...request.headers, 'content-type': type } })),
    fc.tuple(fc.string({ maxLength: 12 }), fc.string({ maxLength: 12 })).map(([key, value]): Change => (request) => {
      const url = new URL(request.url)
      url.searchParams.append(key, value)
      return { ...request, url }
    }),
  )
}

/** In Latin-1, every byte is one character. */
function onBody(apply: (text: string) => string): Change {
  return (request) => ({ ...request, body: Buffer.from(apply(Buffer.from(request.body).toString('latin1')), 'latin1') })
}

function textChange(at: fc.Arbitrary<number>): fc.Arbitrary<(text: string) => string> {
  const deadLetter = fc.nat(255).map((code) => String.fromCharCode(code))
  return fc.oneof(
    fc.tuple(at, deadLetter).map(
      ([n, one]) =>
        (text: string) =>
          text.slice(0, n) + one + text.slice(n + 1),
    ),
    fc.tuple(at, deadLetter).map(
      ([n, one]) =>
        (text: string) =>
          text.slice(0, n) + one + text.slice(n),
    ),
    at.map((n) => (text: string) => text.slice(0, n) + text.slice(n + 1)),
    at.map(
      (n) => (text: string) =>
        text.slice(0, n) +
        text
          .slice(n, n + 2)
          .split('')
          .toReversed()
          .join('') +
        text.slice(n + 2),
    ),
    at.map((n) => (text: string) => text.slice(0, n)),
    at.map((n) => (text: string) => text + text.slice(n)),
  )
}
