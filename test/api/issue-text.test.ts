// What a caller of the API reads about a wrong field. The validation library's own texts must not appear.
import { expect, it } from 'vitest'
import { z } from 'zod'
import { describeIssue } from '../../src/api/issue-text.ts'

const SECRET = 'whsec_do-not-repeat-me'

const CASES: readonly (readonly [string, z.ZodType, unknown, string])[] = [
  ['a missing field', z.object({ url: z.string() }), {}, 'it is missing'],
  ['a number for text', z.string(), 7, 'it must be text; got 7'],
  ['text for a number', z.int(), SECRET, 'it must be a number; got text'],
  ['a fraction', z.int(), 1.5, 'it must be a whole number; got 1.5'],
  ['text for a boolean', z.boolean(), SECRET, 'it must be true or false; got text'],
  ['text for a list', z.array(z.string()), SECRET, 'it must be a list; got text'],
  ['a list for an object', z.strictObject({}), [], 'it must be an object; got a list'],
  ['an unknown word', z.enum(['now', 'backlog']), SECRET, 'it must be now or backlog; got text'],
  ['a text that is too long', z.string().max(3), SECRET, 'it must have at most 3 characters; got 22'],
  ['an empty list', z.array(z.string()).min(1), [], 'it must have at least 1 items; got 0'],
  ['a number that is too small', z.int().min(1), 0, 'it must be at least 1; got 0'],
  ['a number that is too large', z.int().max(10), 11, 'it must be at most 10; got 11'],
  ['text that is no URL', z.url(), SECRET, 'it must be a URL; got text'],
  ['a number with a rest', z.int().multipleOf(5), 7, 'it must be a multiple of 5; got 7'],
  [
    'no member of a union',
    z.union([z.string(), z.int()]),
    [],
    'it is not in a form that this field accepts; got a list',
  ],
  [
    'a misspelled field',
    z.strictObject({ secret: z.string().optional() }),
    { secert: SECRET },
    '"secert" is not a field. Did you mean secret? The fields are secret',
  ],
  ['a field where there is none', z.strictObject({}), { a: 1 }, '"a" is not a field. There are no fields'],
]

it.each(CASES)('explains %s', (_, schema, value, text) => {
  const result = schema.safeParse(value, { error: describeIssue })
  expect(result.error?.issues[0]?.message).toBe(text)
})
