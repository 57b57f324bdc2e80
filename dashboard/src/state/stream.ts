// The live stream of changes. It reconnects on its own; while it is lost, the pages still poll, and a note says so.
import { effect, signal } from '@preact/signals'
import { session } from './session.ts'

export interface Change {
  readonly kind: string
  readonly at: number
  readonly flow: string
  readonly id: string
  readonly detail: string
  readonly lane?: string
  readonly key?: string
  readonly note?: string
  readonly lanes?: readonly { readonly lane: string; readonly flow: string; readonly key?: string }[]
}

export interface Lost {
  /** When the last change, or the connection itself, was there. */
  readonly at: number
  readonly retryAt: number
}

/** However many changes arrive, a page hears of them at most this often. */
const FLUSH_EVERY = 250
/** More changes than this between two flushes are not handed on one by one. */
const MOST_PENDING = 500
const FIRST_RETRY = 1_000
const LONGEST_RETRY = 15_000
const KINDS = ['event', 'alert', 'claimed', 'settled', 'dead', 'steered', 'purged']

export const lost = signal<Lost | undefined>(undefined)
export const isLive = signal(false)

type Listener = (changes: readonly Change[], skipped: boolean) => void
const listeners = new Set<Listener>()

/** `listen` hands on the changes in groups; `skipped` means that some are missing, and lists must be read anew. */
export function listen(listener: Listener): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

let pending: Change[] = []
let missed = false
let timer: ReturnType<typeof setTimeout> | undefined

function add(change: Change): void {
  if (pending.length < MOST_PENDING) pending.push(change)
  else missed = true
  timer ??= setTimeout(flush, FLUSH_EVERY)
}

function flush(): void {
  timer = undefined
  const [changes, skipped] = [pending, missed]
  pending = []
  missed = false
  if (document.hidden) return
  for (const listener of listeners) listener(changes, skipped)
}

let source: EventSource | undefined
let retry: ReturnType<typeof setTimeout> | undefined
let wait = FIRST_RETRY
let wasOpen = false

function open(): void {
  clearTimeout(retry)
  source?.close()
  const next = new EventSource(new URL('v1/stream', document.baseURI))
  source = next
  next.addEventListener('begun', () => {
    wait = FIRST_RETRY
    if (wasOpen) skip()
    wasOpen = true
    isLive.value = true
    lost.value = undefined
  })
  next.addEventListener('skipped', skip)
  for (const kind of KINDS)
    next.addEventListener(kind, (event: MessageEvent<string>) => add(JSON.parse(event.data) as Change))
  next.addEventListener('error', () => {
    if (source !== next) return
    next.close()
    isLive.value = false
    lost.value = { at: lost.value?.at ?? Date.now(), retryAt: Date.now() + wait }
    retry = setTimeout(open, wait)
    wait = Math.min(wait * 2, LONGEST_RETRY)
  })
}

function skip(): void {
  missed = true
  timer ??= setTimeout(flush, FLUSH_EVERY)
}

/** `reconnect` tries again now instead of at the next planned time. */
export function reconnect(): void {
  wait = FIRST_RETRY
  open()
}

function close(): void {
  clearTimeout(retry)
  source?.close()
  source = undefined
  isLive.value = false
  lost.value = undefined
}

/**
 * A hidden tab holds no stream: over HTTP/1.1 a browser has six connections for a server, and six forgotten tabs would
 * leave none for the seventh.
 */
export function startStream(): void {
  const isSeen = signal(!document.hidden)
  document.addEventListener('visibilitychange', () => (isSeen.value = !document.hidden))
  effect(() => {
    const isSignedIn = session.value !== null && session.value !== undefined
    if (!isSignedIn) wasOpen = false
    if (isSignedIn && isSeen.value) open()
    else close()
  })
}
