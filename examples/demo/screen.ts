// A `Screen` shows the demo: as a live table in a terminal, or as lines in a file or a pipe.
import type { Millis } from 'sluice'
import { seconds, wordsFor, type Life } from './life.ts'
import type { Snapshot } from './snapshot.ts'
import type { Paint, Style } from './style.ts'
import { MOST_NEEDED } from './welcome.ts'
import { fit, PLAIN, tableOf, WIDTH_MAX, type Look } from './table.ts'

export interface Screen {
  /** The lines stay in view: above the table, or at the beginning of the log. */
  welcome(lines: readonly string[]): void
  /** Times are counted from `since`. */
  news(life: Life, since: Millis): void
  show(snapshot: Snapshot): void
  close(): void
}

const KINDS: Readonly<Record<Life['kind'], Style>> = {
  received: 'dim',
  due: 'cyan',
  claimed: 'green',
  called: 'plain',
  done: 'green',
  retry: 'magenta',
  dead: 'red',
  released: 'plain',
  lost: 'red',
}

interface Item {
  readonly life: Life
  /** Since the start of the demo. */
  readonly at: Millis
}

/** `createTimeline` gives each entry of the log its time. A deadline is noticed after it has passed, so times may not run backwards. */
function createTimeline(): (life: Life, since: Millis) => Item {
  let latest: Millis = 0
  return (life, since) => ({ life, at: (latest = Math.max(latest, life.at - since)) })
}

const WORDS_FROM = 31

function newsLine({ life, at: ms }: Item, { width, paint }: Look): string {
  const at = seconds(ms).padStart(8)
  const words = fit(wordsFor(life), width - WORDS_FROM).trimEnd()
  return ` ${at}  ${life.user.padEnd(8)}  ${paint(KINDS[life.kind], life.kind.padEnd(8))}  ${words}`
}

const TABLE_EVERY: Millis = 5_000

/** `plainScreen` writes a line for everything that happens to a lane, and a table every five seconds. */
export function plainScreen(write: (text: string) => unknown): Screen {
  let next = TABLE_EVERY
  const timed = createTimeline()
  return {
    welcome: (lines) => void write(`${lines.join('\n')}\n\n`),
    news(life, since) {
      if (life.kind !== 'called') write(`${newsLine(timed(life, since), PLAIN)}\n`)
    },
    show(snapshot) {
      if (snapshot.elapsed < next) return
      next += TABLE_EVERY
      write(`\n${tableOf(snapshot, PLAIN).join('\n')}\n\n`)
    },
    close() {},
  }
}

/** `Terminal` is the part of a terminal that the screen uses. */
export interface Terminal {
  readonly columns?: number
  readonly rows?: number
  write(text: string): unknown
}

// The alternate screen leaves the earlier output untouched. Without wrapping, a long line does not shift the lines below.
const OPEN = '\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J'
const CLOSE = '\x1b[?7h\x1b[?25h\x1b[?1049l'
// A frame is drawn over the last one without clearing it, and at once in terminals that support that, so it does not flicker.
const FRAME = '\x1b[?2026h\x1b[H'
const LINE_END = '\x1b[K'
const FRAME_END = '\x1b[J\x1b[?2026l'

const NEWS_KEPT = 100

export function liveScreen(terminal: Terminal, paint: Paint): Screen {
  const latest: Item[] = []
  const timed = createTimeline()
  let greeting: readonly string[] = []
  let open = true
  terminal.write(OPEN)
  return {
    welcome(lines) {
      greeting = lines
    },
    news(life, since) {
      if (life.kind === 'called') return
      latest.push(timed(life, since))
      if (latest.length > NEWS_KEPT) latest.shift()
    },
    show(snapshot) {
      if (!open) return
      const { columns = 80, rows = 24 } = terminal
      // One column less, because clearing the rest of a full line would erase its last character.
      const look = { width: Math.min(columns - 1, WIDTH_MAX), paint }
      const table = tableOf(snapshot, look)
      // A small terminal shows the table first, then the newest entries of the log.
      const left = rows - table.length - 4
      const head = [greeting.length, MOST_NEEDED, 1].find((lines) => lines <= left) ?? 0
      const top = head === 0 || greeting.length === 0 ? [] : [...greeting.slice(0, head), '']
      const room = Math.max(0, rows - top.length - table.length - 3)
      const news = latest.slice(Math.max(0, latest.length - room)).map((item) => newsLine(item, look))
      const frame = [...top, ...table, '', ...news, '', paint('dim', ' Ctrl-C stops')].slice(0, rows)
      terminal.write(FRAME + frame.map((line) => line + LINE_END).join('\r\n') + FRAME_END)
    },
    close() {
      if (open) terminal.write(CLOSE)
      open = false
    },
  }
}
