// What an endpoint is, as options: the same for `sluice endpoints add` and `change`.
import { readFileSync } from 'node:fs'
import type { Given, Option, Options } from '../arguments.ts'
import { texts } from '../command.ts'

/** Not by the command line itself: others on the machine see what is typed there. */
export const SECRET_FILE: Option = { type: 'string', value: 'FILE', says: 'has its secret; - for standard input' }

export const FIELDS: Options = {
  ...texts({
    name: 'for people',
    description: 'for people',
    types: 'what it wants, as order.*,invoice.paid; all unless said',
    form: 'of the body: standard, or events for { events }; standard unless said',
    rate: 'so many POSTs at most; none takes that away',
    per: 'in so long, as 10s; 1s unless said',
  }),
  signing: {
    type: 'string',
    value: 'HOW',
    says: 'standard, bearer, hmac:HEADER:hex or hmac:HEADER:base64[:PREFIX]; standard unless said',
  },
  header: {
    type: 'string',
    value: 'NAME:VALUE',
    multiple: true,
    says: 'sent along; without a value it is taken away; @FILE has one in each line, which others do not see',
  },
  'secret-file': SECRET_FILE,
}

/** Those that were given, as the API has them. Whether they are right is its business. */
export function fieldsIn(given: Given): Readonly<Record<string, unknown>> {
  const [types, signing] = [given.text('types'), given.text('signing')]
  const [rate, per] = [given.text('rate'), given.text('per')]
  const headers = given.all('header').flatMap((one) => (one.startsWith('@') ? linesOf(one.slice(1)) : [one]))
  return {
    ...given.texts(['name', 'description', 'form']),
    ...(types !== undefined && { eventFilter: types.split(',') }),
    ...(signing !== undefined && { signing: signingOf(signing) }),
    ...((rate ?? per) !== undefined && { rate: rate === 'none' ? null : { rate: Number(rate), per: per ?? '1s' } }),
    ...(headers.length > 0 && { headers: Object.fromEntries(headers.map(headerOf)) }),
    ...secretIn(given),
  }
}

export function secretIn(given: Given): { readonly secret?: string } {
  const file = given.text('secret-file')
  return file === undefined ? {} : { secret: textOf(file).replace(/\r?\n$/, '') }
}

/** No name of a header has a colon. */
function signingOf(text: string): object {
  const [kind, header, encoding, ...prefix] = text.split(':')
  return {
    kind,
    ...(header !== undefined && { header, encoding }),
    ...(prefix.length > 0 && { prefix: prefix.join(':') }),
  }
}

function headerOf(text: string): readonly [string, string | null] {
  const [name = '', ...value] = text.split(':')
  return [name.trim(), value.join(':').trim() || null]
}

function linesOf(file: string): readonly string[] {
  return textOf(file)
    .split(/\r?\n/)
    .filter((line) => line.trim() !== '')
}

function textOf(file: string): string {
  return readFileSync(file === '-' ? 0 : file, 'utf8')
}
