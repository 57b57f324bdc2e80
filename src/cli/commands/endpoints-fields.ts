// The fields of an endpoint as options of `sluice endpoints create` and `update`.
import { readFileSync } from 'node:fs'
import type { ParsedArguments, Option, Options } from '../arguments.ts'
import { textOptions } from '../command.ts'

/** A secret is read from a file, because other users of the machine can see command-line arguments. */
export const SECRET_FILE_OPTION: Option = {
  type: 'string',
  placeholder: 'FILE',
  description: 'file with the secret; - for standard input',
}

export const ENDPOINT_OPTIONS: Options = {
  ...textOptions({
    name: 'display name',
    description: 'description, shown in lists and on the dashboard',
    types: 'event types, e.g. order.*,invoice.paid; default all',
    where: 'filter over the event data, as JSON; none removes it',
    form: 'form of the body: standard (default), events[:NAME=PATH,…], flat, cloudevents[:MODE], slack, discord or pagerduty',
    rate: 'maximum number of POSTs in --per; none removes the limit',
    'disable-after': 'how long it may only fail before it is disabled, e.g. 5d (default); never',
    per: 'period of --rate, e.g. 10s; default 1s',
  }),
  signing: {
    type: 'string',
    placeholder: 'HOW',
    description: 'standard, bearer, hmac:HEADER:hex or hmac:HEADER:base64[:PREFIX]; default standard',
  },
  header: {
    type: 'string',
    placeholder: 'NAME:VALUE',
    multiple: true,
    description: 'header to send; without a value, remove it; @FILE reads one per line, hidden from other users',
  },
  'secret-file': SECRET_FILE_OPTION,
}

/** `parseEndpointOptions` returns the given fields under their API names. The API validates them. */
export function parseEndpointOptions(args: ParsedArguments): Readonly<Record<string, unknown>> {
  const [types, signing, where] = [args.text('types'), args.text('signing'), args.text('where')]
  const [form, disableAfter] = [args.text('form'), args.text('disable-after')]
  const [rate, per] = [args.text('rate'), args.text('per')]
  const headers = args.all('header').flatMap((one) => (one.startsWith('@') ? readLines(one.slice(1)) : [one]))
  return {
    ...args.texts(['name', 'description']),
    ...(form !== undefined && { form: parseForm(form) }),
    ...(types !== undefined && { eventFilter: types.split(',') }),
    ...(where !== undefined && { where: parseFilter(where) }),
    ...(signing !== undefined && { signing: parseSigning(signing) }),
    ...((rate ?? per) !== undefined && { rate: rate === 'none' ? null : { rate: Number(rate), per: per ?? '1s' } }),
    ...(disableAfter !== undefined && { disableAfter: disableAfter === 'never' ? null : disableAfter }),
    ...(headers.length > 0 && { headers: Object.fromEntries(headers.map(parseHeader)) }),
    ...readSecret(args),
  }
}

export function readSecret(args: ParsedArguments): { readonly secret?: string } {
  const file = args.text('secret-file')
  return file === undefined ? {} : { secret: readText(file).replace(/\r?\n$/, '') }
}

/** The API rejects a text that is not JSON. */
function parseFilter(text: string): unknown {
  if (text === 'none') return null
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function parseForm(text: string): unknown {
  const [kind, detail] = splitOnce(text, ':')
  if (detail === undefined) return kind
  if (kind !== 'events') return { kind, mode: detail }
  return { kind, fields: Object.fromEntries(detail.split(',').map((field) => splitOnce(field, '='))) }
}

function splitOnce(text: string, by: string): readonly [string, string | undefined] {
  const at = text.indexOf(by)
  return at === -1 ? [text, undefined] : [text.slice(0, at), text.slice(at + by.length)]
}

/** A header name cannot contain a colon, so colons separate the parts; the prefix may contain more. */
function parseSigning(text: string): object {
  const [kind, header, encoding, ...prefix] = text.split(':')
  return {
    kind,
    ...(header !== undefined && { header, encoding }),
    ...(prefix.length > 0 && { prefix: prefix.join(':') }),
  }
}

function parseHeader(text: string): readonly [string, string | null] {
  const [name = '', ...value] = text.split(':')
  return [name.trim(), value.join(':').trim() || null]
}

function readLines(file: string): readonly string[] {
  return readText(file)
    .split(/\r?\n/)
    .filter((line) => line.trim() !== '')
}

/** `readText` reads a file, or standard input for `-`. */
export function readText(file: string): string {
  return readFileSync(file === '-' ? 0 : file, 'utf8')
}
