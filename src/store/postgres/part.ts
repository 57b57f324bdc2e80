// A transaction has the rules decide on what it has at hand. What they ask for and is not there is noted, they go on as if
// there were nothing, and what they decided is thrown away; all that was noted is loaded, and they decide again. A pass
// without anything lacking is the decision, and its changes are written.
import type { Row, Value } from './values.ts'

/** The open transaction. */
export interface Db {
  /** Nothing is locked or written. */
  readonly readOnly: boolean
  rows(sql: string, values?: readonly unknown[]): Promise<readonly Row[]>
}

/** To be sent. */
export type Statement = readonly [sql: string, values: readonly unknown[]]

/** Some tables, as the rules see them in one transaction. */
export interface Part {
  /** The rules begin anew: what they changed is forgotten, what was loaded stays. */
  again(): void
  readonly isLacking: boolean
  /** Sends all it has to ask at once: what is asked first is done first. */
  load(db: Db): Promise<unknown>
  /** The changes of the last pass, in the order in which they are made. Whatever fails here fails before anything is sent. */
  writes(): readonly Statement[]
}

/** Rows with a key, and what the rules did to them. */
export class Keyed<T> {
  readonly #loaded = new Map<string, T | undefined>()
  readonly #changed = new Map<string, T | undefined>()
  #lacking = new Set<string>()

  /** Undefined where there is none, and where it is not known yet. */
  get(key: string): T | undefined {
    if (this.#changed.has(key)) return this.#changed.get(key)
    if (!this.#loaded.has(key)) this.#lacking.add(key)
    return this.#loaded.get(key)
  }

  /** Whether it is known what is there, or was before the rules changed it. */
  knows(key: string): boolean {
    return this.#loaded.has(key)
  }

  /** What the server has, whatever the rules did. */
  stored(key: string): T | undefined {
    return this.#loaded.get(key)
  }

  put(key: string, row: T): void {
    this.#changed.set(key, row)
  }

  /** Only what is known to be there can be removed. */
  remove(key: string): void {
    if (!this.#changed.has(key) && !this.#loaded.has(key)) this.#lacking.add(key)
    this.#changed.set(key, undefined)
  }

  again(): void {
    this.#changed.clear()
    this.#lacking.clear()
  }

  get isLacking(): boolean {
    return this.#lacking.size > 0
  }

  /** What has to be loaded, in the order in which all transactions lock. Asked once. */
  lacking(): readonly string[] {
    const keys = [...this.#lacking].toSorted()
    this.#lacking = new Set()
    return keys
  }

  /** Keys that were asked for and have no row are known to be missing. */
  load(key: string, row: T | undefined): void {
    this.#loaded.set(key, row)
  }

  /** Also of those that are known to be missing, which somebody else may have made since. */
  get knownKeys(): readonly string[] {
    return [...this.#loaded.keys()]
  }

  /** Of rows that were loaded, whatever became of them. */
  get storedKeys(): readonly string[] {
    return [...this.#loaded].flatMap(([key, row]) => (row === undefined ? [] : [key]))
  }

  /** Of those the rows, as the server has them. */
  get storedRows(): readonly T[] {
    return [...this.#loaded.values()].filter((row) => row !== undefined)
  }

  /** Every row that is known, as the rules have left it. */
  *values(): Iterable<T> {
    for (const row of this.#changed.values()) if (row !== undefined) yield row
    for (const [key, row] of this.#loaded) if (row !== undefined && !this.#changed.has(key)) yield row
  }

  get changes(): ReadonlyMap<string, T | undefined> {
    return this.#changed
  }

  /** Rows to be written. */
  get kept(): readonly T[] {
    return [...this.#changed.values()].filter((row) => row !== undefined)
  }

  /** Keys of rows that the server has and that are to go. */
  get removed(): readonly string[] {
    return [...this.#changed].flatMap(([key, row]) =>
      row === undefined && this.#loaded.get(key) !== undefined ? [key] : [],
    )
  }
}

/** Questions that are answered by the server: each is put once, and its answer kept for the passes to come. */
export class Questions<Q extends readonly unknown[], A> {
  readonly #answers = new Map<string, A>()
  readonly #lacking = new Map<string, Q>()

  /** Undefined: not answered yet. */
  ask(...question: Q): A | undefined {
    const name = JSON.stringify(question)
    const answer = this.#answers.get(name)
    if (answer === undefined) this.#lacking.set(name, question)
    return answer
  }

  /** Told along with something else. The first answer stands. */
  know(question: Q, answer: A): void {
    const name = JSON.stringify(question)
    if (!this.#answers.has(name)) this.#answers.set(name, answer)
  }

  get isLacking(): boolean {
    return this.#lacking.size > 0
  }

  again(): void {
    this.#lacking.clear()
  }

  async load(answer: (...question: Q) => Promise<A>): Promise<void> {
    await this.loadTogether((questions) => Promise.all(questions.map((question) => answer(...question))))
  }

  /** All with one statement. */
  async loadTogether(answer: (questions: readonly Q[]) => Promise<readonly A[]>): Promise<void> {
    const questions = [...this.#lacking]
    this.#lacking.clear()
    if (questions.length === 0) return
    const answers = await answer(questions.map(([, question]) => question))
    for (const [at, [name]] of questions.entries()) this.#answers.set(name, answers[at] as A)
  }
}

/** Rows go to the server as one JSON array, and into the columns that are named. */
export function upsert(table: string, columns: readonly string[], keys: readonly string[]): string {
  const others = columns.filter((column) => !keys.includes(column))
  const then =
    others.length === 0
      ? 'nothing'
      : `update set ${others.map((column) => `${column} = excluded.${column}`).join(', ')}`
  return `insert into ${table} (${columns.join(', ')}) select ${columns.join(', ')} from json_populate_recordset(null::${table}, $1)
    on conflict (${keys.join(', ')}) do ${then}`
}

/** `from`: a table and its column. */
export function deleteBy(from: string, keys: readonly (string | number)[]): readonly Statement[] {
  return keys.length === 0 ? [] : [[`delete from ${from} = any($1)`, [keys]]]
}

export function withJson(sql: string, rows: readonly Readonly<Record<string, Value>>[]): readonly Statement[] {
  return rows.length === 0 ? [] : [[sql, [JSON.stringify(rows)]]]
}
