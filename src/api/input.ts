// Parses the input of an API call by the schemas of its route.
import type { z } from 'zod'
import { SluiceError } from '../errors.ts'
import type { ReadBody } from '../receive/body.ts'
import type { RequestHead } from '../receive/receiver.ts'
import { describeIssue } from './issue-text.ts'
import type { ApiRoute } from './route.ts'

const MAX_BODY = 1024 * 1024

/** A repeated name is an error, because choosing one of its values would be a guess. */
export function parseQuery({ searchParams }: URL): Readonly<Record<string, string>> {
  const query: Record<string, string> = {}
  for (const [name, value] of searchParams) {
    if (Object.hasOwn(query, name))
      throw new SluiceError('REQUEST_INVALID', `query: ${name} must be given once; got two values.`)
    Object.defineProperty(query, name, { value, enumerable: true })
  }
  return query
}

export async function readInput(
  route: Pick<ApiRoute, 'body' | 'parseBody'>,
  head: RequestHead,
  read: ReadBody,
): Promise<unknown> {
  const body = await read(MAX_BODY)
  if (body === 'too-large') throw new SluiceError('BODY_TOO_LARGE', 'The body must have at most 1 MB.')
  if (typeof body === 'string') throw new SluiceError('REQUEST_INVALID', 'body: it did not arrive completely.')
  return route.parseBody === undefined
    ? parseInput(route.body, parseJsonBody(head, body), 'body')
    : route.parseBody(head, body)
}

function parseJsonBody(head: RequestHead, body: Uint8Array): unknown {
  if (body.length === 0) return {}
  // HTML forms cannot send this content type, so a form of a foreign page cannot call the API.
  if (!/^application\/json\b/i.test(head.headers['content-type'] ?? '')) {
    throw new SluiceError('BODY_NOT_JSON', 'The content type of the body must be application/json.')
  }
  try {
    return JSON.parse(Buffer.from(body).toString(), assertWellFormed)
  } catch (error) {
    throw error instanceof SluiceError ? error : new SluiceError('REQUEST_INVALID', 'body: it must be valid JSON.')
  }
}

/** JSON can escape a lone surrogate, which no store can keep as text. */
function assertWellFormed(name: string, value: unknown): unknown {
  if (name.isWellFormed() && (typeof value !== 'string' || value.isWellFormed())) return value
  const where = name.slice(0, 100).toWellFormed()
  throw new SluiceError('REQUEST_INVALID', `body: ${where}: it must be well-formed Unicode; got a lone surrogate.`)
}

export function parseInput(schema: z.ZodType, value: unknown, where: 'path' | 'query' | 'body'): unknown {
  const result = schema.safeParse(value, { error: describeIssue })
  if (result.success) return result.data
  const { path = [], message = 'the value is invalid' } = result.error.issues[0] ?? {}
  const field = path.length === 0 ? where : `${where}: ${path.join('.')}`
  throw new SluiceError('REQUEST_INVALID', `${field}: ${message}.`)
}
