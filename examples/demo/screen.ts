// Where the demo is seen: a live picture in a terminal, or lines in a file or a pipe.
import type { Millis } from 'sluice'
import { seconds, wordsFor, type Life } from './life.ts'
import type { Snapshot } from './snapshot.ts'
import type { Paint, Style } from './style.ts'
import { fit, PLAIN, tableOf, WIDTH_MAX, type Look } from './table.ts'

export interface Screen {
  /** `since`: the moment from which times are counted. */
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
  readonly since: Millis
}

const WORDS_FROM = 31

function newsLine({ life, since }: Item, { width, paint }: Look): string {
  const at = seconds(life.at - since).padStart(8)
  const words = fit(wordsFor(life), width - WORDS_FROM).trimEnd()
  return ` ${at}  ${life.user.padEnd(8)}  ${paint(KINDS[life.kind], life.kind.padEnd(8))}  ${words}`
}

const TABLE_EVERY: Millis = 5_000

/** A line for each event of a lane's life, and a table now and then. */
export function plainScreen(write: (text: string) => unknown): Screen {
  let next = TABLE_EVERY
  return {
    news(life, since) {
      if (life.kind !== 'called') write(`${newsLine({ life, since }, PLAIN)}\n`)
    },
    show(snapshot) {
      if (snapshot.elapsed < next) return
      next += TABLE_EVERY
      write(`\n${tableOf(snapshot, PLAIN).join('\n')}\n\n`)
    },
    close() {},
  }
}

/** The part of a terminal that is used here. */
export interface Terminal {
  readonly columns?: number
  readonly rows?: number
  write(text: string): unknown
}

// The alternate screen leaves what was there before untouched; long lines are cut off instead of breaking the picture.
const OPEN = '\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J'
const CLOSE = '\x1b[?7h\x1b[?25h\x1b[?1049l'
// Drawn over the frame before, never cleared first; terminals that know how show it all at once.
const FRAME = '\x1b[?2026h\x1b[H'
const LINE_END = '\x1b[K'
const FRAME_END = '\x1b[J\x1b[?2026l'

const NEWS_KEPT = 100

export function liveScreen(terminal: Terminal, paint: Paint): Screen {
  const latest: Item[] = []
  let open = true
  terminal.write(OPEN)
  return {
    news(life, since) {
      if (life.kind === 'called') return
      latest.push({ life, since })
      if (latest.length > NEWS_KEPT) latest.shift()
    },
    show(snapshot) {
      if (!open) return
      const { columns = 80, rows = 24 } = terminal
      // One less: what ends in the last column would be erased with the rest of its line.
      const look = { width: Math.min(columns - 1, WIDTH_MAX), paint }
      const table = tableOf(snapshot, look)
      // The newest at the bottom, as many as there is room for.
      const room = Math.max(0, rows - table.length - 3)
      const news = latest.slice(Math.max(0, latest.length - room)).map((item) => newsLine(item, look))
      const frame = [...table, '', ...news, '', paint('dim', ' Ctrl-C stops')].slice(0, rows)
      terminal.write(FRAME + frame.map((line) => line + LINE_END).join('\r\n') + FRAME_END)
    },
    close() {
      if (open) terminal.write(CLOSE)
      open = false
    },
  }
}
