// `livePage` serves a page of static files that follows a state object by server-sent events. It runs no inline script.
import { readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import { systemClock, type Millis } from 'sluice'
import type { Handler } from './http.ts'

export interface Page {
  /** The folder with index.html and the files that it links to, e.g. `new URL('page/', import.meta.url)`. */
  readonly folder: URL
  /** What the page shows. The page gets it as JSON each time it has changed: `new EventSource('/state')`. */
  readonly state: () => unknown
  /** What the page can do: `fetch('/do/<name>', { method: 'POST', body: JSON.stringify(…) })`. */
  readonly actions?: Readonly<Record<string, (body: unknown) => unknown>>
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}
const HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}
const EVERY: Millis = 100

export function livePage({ folder, state, actions = {} }: Page): Handler {
  return async (request) => {
    const { pathname, host } = new URL(request.url)
    const action = pathname.startsWith('/do/') ? pathname.slice('/do/'.length) : undefined
    if (request.method === 'POST' && action !== undefined && Object.hasOwn(actions, action)) {
      // Another page that is open in the browser may not press our buttons.
      const origin = request.headers.get('origin')
      if (origin !== null && origin !== `http://${host}`) return new Response('', { status: 403, headers: HEADERS })
      const text = await request.text()
      const result = await actions[action]?.(text === '' ? undefined : JSON.parse(text))
      return Response.json(result ?? null, { headers: HEADERS })
    }
    if (request.method !== 'GET') return new Response('', { status: 404, headers: HEADERS })
    if (pathname === '/state') return stream(state)
    const name = pathname === '/' ? 'index.html' : pathname.slice(1)
    const type = TYPES[extname(name)]
    // A file of the folder itself: no path leads out of it.
    const body = type === undefined || !/^[\w-]+\.\w+$/.test(name) ? undefined : await textOf(new URL(name, folder))
    if (type === undefined || body === undefined) return new Response('', { status: 404, headers: HEADERS })
    return new Response(body, { headers: { ...HEADERS, 'content-type': type } })
  }
}

async function textOf(file: URL): Promise<string | undefined> {
  return readFile(file, 'utf8').catch(() => undefined)
}

function stream(state: () => unknown): Response {
  let last = ''
  let stop: (() => void) | undefined
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      const look = async (): Promise<void> => {
        const now = JSON.stringify(await state())
        if (now !== last) controller.enqueue(Buffer.from(`data: ${now}\n\n`))
        last = now
        next()
      }
      const next = (): void => {
        stop = systemClock.after(EVERY, () => void look().catch((error: unknown) => controller.error(error)))
      }
      void look().catch((error: unknown) => controller.error(error))
    },
    cancel: () => stop?.(),
  })
  return new Response(body, { headers: { ...HEADERS, 'content-type': 'text/event-stream' } })
}
