// Reads a user's tasks from Notion and writes them back. The caller decides how many calls there may be.
import { APIErrorCode, isNotionClientError, type Client } from '@notionhq/client'
import { PermanentError } from 'sluice'
import type { Write } from './plan.ts'
import { DONE, PROPERTIES, type Page } from './properties.ts'
import { taskOf, type Task } from './task.ts'

/** The most that Notion gives at once. */
const PAGE_SIZE = 100

export interface Loaded {
  readonly tasks: readonly Task[]
  readonly calls: number
}

/** Open tasks, and done ones that still have a rank. The database filters them, so that no unnecessary task is read. */
function tasksOf(user: string): NonNullable<Parameters<Client['dataSources']['query']>[0]['filter']> {
  const open = { property: PROPERTIES.status, status: { does_not_equal: DONE } }
  const ranked = { property: PROPERTIES.rank, number: { is_not_empty: true as const } }
  return { and: [{ property: PROPERTIES.assignee, people: { contains: user } }, { or: [open, ranked] }] }
}

export async function load(notion: Client, dataSource: string, user: string): Promise<Loaded> {
  const tasks: Task[] = []
  let calls = 0
  for (let cursor: string | undefined | null = undefined; cursor !== null; calls++) {
    const from: { start_cursor?: string } = cursor === undefined ? {} : { start_cursor: cursor }
    const answer = await calling(() =>
      notion.dataSources.query({ data_source_id: dataSource, filter: tasksOf(user), page_size: PAGE_SIZE, ...from }),
    )
    if (answer.request_status?.type === 'incomplete') {
      throw new PermanentError(`${user} has more tasks than Notion gives for one query; ranks would be wrong.`)
    }
    tasks.push(...answer.results.map((page) => taskOf(page as Page)))
    cursor = answer.has_more ? answer.next_cursor : null
  }
  return { tasks, calls }
}

/** `gone`: the page was deleted, or taken from us, since the tasks were read. */
export async function write(notion: Client, { id, rank, projected }: Write): Promise<'written' | 'gone'> {
  const properties = {
    ...(rank === undefined ? {} : { [PROPERTIES.rank]: { number: rank } }),
    ...(projected === undefined ? {} : { [PROPERTIES.projected]: { date: { start: projected } } }),
  }
  try {
    await notion.pages.update({ page_id: id, properties })
    return 'written'
  } catch (error) {
    if (isNotionClientError(error) && error.code === APIErrorCode.ObjectNotFound) return 'gone'
    throw judged(error)
  }
}

export async function readPage(notion: Client, page: string): Promise<Page> {
  return (await calling(() => notion.pages.retrieve({ page_id: page }))) as Page
}

async function calling<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (error) {
    throw judged(error)
  }
}

const PERMANENT: ReadonlySet<string> = new Set([
  APIErrorCode.Unauthorized,
  APIErrorCode.RestrictedResource,
  APIErrorCode.ObjectNotFound,
  APIErrorCode.InvalidJSON,
  APIErrorCode.InvalidRequestURL,
  APIErrorCode.InvalidRequest,
  APIErrorCode.ValidationError,
])

/** Errors that a retry cannot fix become permanent; all others pass unchanged, in particular those of the limit. */
function judged(error: unknown): unknown {
  if (!isNotionClientError(error) || !PERMANENT.has(error.code)) return error
  return new PermanentError(`Notion: ${error.code}: ${error.message}`, { cause: error })
}
