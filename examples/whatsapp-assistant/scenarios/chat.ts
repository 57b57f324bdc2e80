// `Chat` is a line of a tenant and the people who write to it, in the seconds of the design: a play compresses them, a test does not.
import type { SettingsChange } from '../domain/settings.ts'
import type { Stage } from '../../kit/stage.ts'
import type { Person, Written } from '../stand-in/meta.ts'
import type { Sent } from '../stand-in/outbox.ts'
import type { Draft } from '../stand-in/model.ts'
import type { World } from '../world.ts'

/** The milliseconds of a second of the design, in real time. */
const COMPRESSED = 30
/** How late an answer may be in real time, on a busy machine. */
const PATIENCE = 10_000

export interface WriteOptions {
  readonly id?: string
  /** In seconds of the design since the beginning, if it is not now. */
  readonly second?: number
  readonly content?: Written['content']
}

export class Chat {
  readonly stage: Stage<World>
  readonly line: string
  /** When the chat began, by the clock of the people's phones. */
  readonly began: number
  /** When the last message was sent, on the clock that only goes forward. */
  written = 0
  readonly #n: number
  readonly #draftsBefore: number
  #second = 0
  #ids = 0

  private constructor(stage: Stage<World>) {
    const { world } = stage
    this.stage = stage
    this.#n = ++world.made
    this.line = `10000${this.#n}`
    this.began = Math.floor(stage.clock.now() / 1_000) * 1_000
    this.#draftsBefore = world.model.drafts.length
  }

  /** Begins a chat on a line of its own. The wait is the 60 seconds of the design, and nothing else delays an answer. */
  static async open(stage: Stage<World>, change: SettingsChange = {}): Promise<Chat> {
    const chat = new Chat(stage)
    const plain = { typing_indicator_enabled: false, natural_delays_enabled: false }
    const longest_wait_ms = chat.ms(600)
    await chat.set({ ...plain, wait_time_before_replying_ms: chat.ms(60), longest_wait_ms, ...change })
    return chat
  }

  /** What people have received from this line. */
  get sent(): readonly Sent[] {
    return this.stage.world.outbox.sent.filter(({ line }) => line === this.line || line === `+${this.line}`)
  }

  get drafts(): readonly Draft[] {
    return this.stage.world.model.drafts.slice(this.#draftsBefore)
  }

  /** The texts that the model got, as far as it completed an answer. */
  get answered(): readonly string[] {
    return this.drafts.flatMap(({ state, text }) => (state === 'made' ? [text] : []))
  }

  /** So many seconds of the design in milliseconds. */
  ms(seconds: number): number {
    return seconds * (this.stage.isVirtual ? 1_000 : COMPRESSED)
  }

  person(name: string): Person {
    return { name, userId: `US.${name}${this.#n}`, phone: `55119${this.#n.toString().padStart(4, '0')}${name.length}` }
  }

  async pass(seconds: number): Promise<void> {
    this.#second += seconds
    await this.stage.sleep(this.ms(seconds))
  }

  /** As `pass`, when something else let the time pass. */
  skip(seconds: number): void {
    this.#second += seconds
  }

  message(person: Person, text: string, { id, second = this.#second, content }: WriteOptions = {}): Written {
    this.#ids++
    const written = { person, id: id ?? `wamid.${this.#n}.${this.#ids}`, at: this.began + second * 1_000 }
    return content === undefined ? { ...written, text } : { ...written, content }
  }

  async write(person: Person, text: string, options?: WriteOptions): Promise<void> {
    this.stage.tell(person.name, `writes ${JSON.stringify(text)}`)
    await this.post([this.message(person, text, options)])
  }

  /** One webhook of Meta with all these messages. */
  async post(written: readonly Written[]): Promise<void> {
    const { status } = await this.stage.send('/in/whatsapp', this.stage.world.meta.webhook(this.line, written))
    this.written = this.stage.clock.monotonic()
    if (status !== 200) throw new Error(`The app responded to Meta with ${status}.`)
  }

  /** Somebody writes through Twilio. */
  async twilio(fields: Readonly<Record<string, string>>): Promise<Response> {
    const { send, address, world, clock } = this.stage
    const { From = 'whatsapp:+5511', Body = '' } = fields
    this.stage.tell(From, `writes ${JSON.stringify(Body)} through Twilio`)
    const To = `whatsapp:+${this.line}`
    const response = await send('/in/twilio', world.twilio.webhook(`${address}/in/twilio`, { From, To, ...fields }))
    this.written = clock.monotonic()
    return response
  }

  /** The provider reports something about a message that it has accepted. */
  async report(sent: Sent, status: string, code?: number): Promise<void> {
    const { send, address, world } = this.stage
    this.stage.tell(sent.to, `${status} ${code ?? ''}: ${JSON.stringify(sent.text)}`)
    const [path, webhook] = sent.id.startsWith('SM')
      ? ['/in/twilio', world.twilio.status(`${address}/in/twilio`, sent, status, code)]
      : ['/in/whatsapp', world.meta.status(sent, status, code)]
    const { ok } = await send(path, webhook)
    if (!ok) throw new Error(`The app refused ${status} of ${sent.id}.`)
  }

  /** The tenant changes settings of the line. */
  async set(change: SettingsChange, line = this.line): Promise<Response> {
    const { app, send, world } = this.stage
    world.apiKey ??= app.admin.keys.create({ name: 'scenarios', role: 'operate' }).then(({ secret }) => secret)
    const headers = { authorization: `Bearer ${await world.apiKey}`, 'content-type': 'application/json' }
    const response = await send(`/settings/${line}`, { method: 'PATCH', headers, body: JSON.stringify(change) })
    if (response.status !== 200) throw new Error(`The settings were not changed: ${await response.text()}`)
    return response
  }

  /** Until everything is answered. */
  async idle(): Promise<void> {
    await this.stage.idle({ flows: ['inbox', 'answer', 'send', 'fallback', 'sluice.delayed'], within: 900_000 })
  }

  check(says: string, held: boolean): void {
    this.stage.check(says, held)
  }

  /** Whether the texts are these, which is shown. */
  checkTexts(what: string, texts: readonly string[], wanted: readonly string[]): void {
    this.check(`${what}: ${JSON.stringify(texts)}`, JSON.stringify(texts) === JSON.stringify(wanted))
  }

  /** The answer came as long after the last message as it should have: exactly in virtual time, and never early. */
  checkWait(at: number | undefined, seconds: number, more = this.stage.world.model.takes): void {
    const [waited, wanted] = [(at ?? 0) - this.written, this.ms(seconds) + more]
    const isRight = this.stage.isVirtual ? waited === wanted : waited > wanted - 20 && waited < wanted + PATIENCE
    this.check(`the answer came ${Math.round(waited)} ms after the last message; ${wanted} were due`, isRight)
  }
}
