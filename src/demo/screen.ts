// Where the demo is seen: a live picture in a terminal, or lines in a file or a pipe.
import type { Millis } from '../index.ts'
import { seconds, wordsFor, type Life } from './life.ts'
import type { Snapshot } from './snapshot.ts'
import { coloured, uncoloured, type Style } from './style.ts'
import { fit, PLAIN, tableOf, type Look } from './table.ts'

export interface Screen {
  news(life: Life, since: Millis): void
  show(snapshot: Snapshot): void
  close(): void
}

const NAME_WIDTH = 8

const NEWS_STYLES: Readonly<Record<Life['kind'], Style>> = {
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

function newsLine(life: Life, since: Millis): string {
  const at = seconds(life.at - since).padStart(8)
  return ` ${at}  ${life.user.padEnd(NAME_WIDTH)}  ${life.kind.padEnd(8)}  ${wordsFor(life)}`
}

const TABLE_EVERY: Millis = 5_000

/** A line for each event of a lane's life, and a table now and then. */
export function plainScreen(write: (text: string) => void): Screen {
  let next = TABLE_EVERY
  return {
    news(life, since) {
      if (life.kind !== 'called') write(`${newsLine(life, since)}\n`)
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
// Terminals that know it show the frame at once; the others ignore it.
const FRAME = '\x1b[?2026h\x1b[H'
const FRAME_END = '\x1b[J\x1b[?2026l'

const WIDTH_MAX = 120
const NEWS_KEPT = 50

export function liveScreen(terminal: Terminal, colours: boolean): Screen {
  const paint = colours ? coloured : uncoloured
  const latest: { readonly life: Life; readonly since: Millis }[] = []
  let open = true
  terminal.write(OPEN)

  /** The newest at the bottom, as many as there is room for. */
  const news = (room: number, look: Look): readonly string[] =>
    room < 1
      ? []
      : latest
          .slice(-room)
          .map(({ life, since }) => paint(NEWS_STYLES[life.kind], fit(newsLine(life, since), look.width).trimEnd()))

  return {
    news(life, since) {
      if (life.kind === 'called') return
      latest.push({ life, since })
      if (latest.length > NEWS_KEPT) latest.shift()
    },
    show(snapshot) {
      if (!open) return
      const rows = terminal.rows ?? 24
      const look = { width: Math.min(terminal.columns ?? 80, WIDTH_MAX), paint }
      const table = tableOf(snapshot, look)
      const frame = [...table, '', ...news(rows - table.length - 3, look), '', paint('dim', ' Ctrl-C stops')]
      terminal.write(
        FRAME +
          frame
            .slice(0, rows)
            .map((line) => `${line}\x1b[K`)
            .join('\r\n') +
          FRAME_END,
      )
    },
    close() {
      if (open) terminal.write(CLOSE)
      open = false
    },
  }
}
