// Keys to the admin API: shown once, kept as a hash, with a role. Whoever reads the store cannot use them.
import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import { keyHash, keyIdOf, proofOf, readQuestion } from '../key-proof.ts'
import type { Doc, Store, WriteDocsCall } from '../store/contract/index.ts'

export type KeyRole = 'read' | 'operate'

export interface Key {
  readonly id: string
  /** As the audit log calls whoever uses it. */
  readonly name: string
  readonly role: KeyRole
  readonly made: Millis
  readonly by: string
}

export interface NewKey extends Key {
  /** Shown now, and never again. */
  readonly secret: string
}

interface KeptKey extends Omit<Key, 'id'> {
  readonly hash: string
}

/** Whom the audit log names who came without a key: no key is called so. */
export const LOOPBACK = 'loopback'

const KIND = 'key'
/** Which key has a name: two that are made at once cannot both have it. */
const NAME_KIND = 'key-name'
const PREFIX = 'slk'
const MOST_KEYS = 1_000
const NAME = /^[\w][\w .@-]{0,99}$/u

type Write = WriteDocsCall['writes'][number]

interface AskedKey {
  readonly name: string
  readonly role: KeyRole
  readonly by?: string
}

export class Keys {
  readonly #store: () => Promise<Store>
  readonly #ears = new Set<() => void>()

  constructor(store: () => Promise<Store>) {
    this.#store = store
  }

  /** Told in this process when a key was made or revoked. */
  listen(hear: () => void): void {
    this.#ears.add(hear)
  }

  async make(options: AskedKey): Promise<NewKey> {
    const { name, role, by = '' } = options
    if (typeof name !== 'string' || !NAME.test(name)) {
      throw invalid('name has 1 to 100 letters, digits, spaces and . @ _ -, and begins with a letter or digit.')
    }
    if (name.toLowerCase() === LOOPBACK) throw invalid(`${name} is whoever came without a key; choose another name.`)
    if (role !== 'read' && role !== 'operate')
      throw invalid(`role is ${JSON.stringify(role)}; it is 'read' or 'operate'.`)
    const store = await this.#store()
    const known = await this.#all(store)
    if (known.length >= MOST_KEYS) throw invalid(`there are ${MOST_KEYS} keys; revoke one first.`)
    const operator = known.find(isOperator)
    if (role === 'read' && operator === undefined) {
      throw new SluiceError('OPERATOR_NEEDED', 'With a key that may only read, nobody could operate any more.')
    }
    const id = randomBytes(6).toString('hex')
    const chance = randomBytes(32).toString('base64url')
    const secret = `${PREFIX}_${id}_${chance}`
    const { now } = await store.readDocs({ kind: KIND, ids: [id], after: '', n: 1 })
    const kept: KeptKey = { name, role, made: now, by, hash: keyHash(secret) }
    const writes = [
      { kind: KIND, id, ifRev: 0, body: Buffer.from(JSON.stringify(kept)) },
      { kind: NAME_KIND, id: name, ifRev: 0, body: Buffer.from(id) },
      ...(role === 'read' ? asItIs(operator) : []),
    ]
    const what = `made the key ${name} of the role ${role}`
    const reply = await store.writeDocs({ writes, raiseRoutes: false, audit: { who: by, what } })
    if (reply.kind === 'written') {
      this.#tell()
      return { id, name, role, made: now, by, secret }
    }
    if (reply.at > 1) return this.make(options)
    throw invalid(`there is a key named ${JSON.stringify(name)}; choose another name.`)
  }

  async list(): Promise<readonly Key[]> {
    const docs = await this.#all(await this.#store())
    return docs.map(keyOf).map(({ hash: _hash, ...key }) => key)
  }

  /** By id or name. From now on nobody gets in with it. */
  async revoke(which: string, by = ''): Promise<'ok' | 'missing'> {
    const store = await this.#store()
    const docs = await this.#all(store)
    const doc = docs.find((one) => one.id === which) ?? docs.find((one) => keyOf(one).name === which)
    if (doc === undefined) return 'missing'
    const { name } = keyOf(doc)
    const others = docs.filter((one) => one !== doc)
    const operator = isOperator(doc) ? others.find(isOperator) : undefined
    if (isOperator(doc) && others.length > 0 && operator === undefined) {
      throw new SluiceError('OPERATOR_NEEDED', `Without ${name} there would be keys, but none that may operate.`)
    }
    const named = await store.readDocs({ kind: NAME_KIND, ids: [name], after: '', n: 1 })
    const gone = [doc, ...named.docs].map(({ kind, id, rev }) => ({ kind, id, ifRev: rev, body: undefined }))
    const writes = [...gone, ...asItIs(operator)]
    const what = `revoked the key ${name}`
    const { kind } = await store.writeDocs({ writes, raiseRoutes: false, audit: { who: by, what } })
    // Somebody was faster, with this key or with the one that is to stay.
    if (kind !== 'written') return this.revoke(doc.id, by)
    this.#tell()
    return 'ok'
  }

  /** Whose it is. Compared in constant time; undefined: nobody's. */
  async find(secret: string): Promise<Key | undefined> {
    const id = keyIdOf(secret)
    const kept = id === undefined ? undefined : await keptKey(await this.#store(), id)
    if (kept === undefined) return undefined
    const { hash: wanted, ...key } = kept
    return timingSafeEqual(Buffer.from(keyHash(secret)), Buffer.from(wanted)) ? key : undefined
  }

  /** Whether anybody has made one: until then only who is on the machine itself gets in. */
  async isAny(): Promise<boolean> {
    const store = await this.#store()
    const { docs } = await store.readDocs({ kind: KIND, ids: undefined, after: '', n: 1 })
    return docs.length > 0
  }

  async #all(store: Store): Promise<readonly Doc[]> {
    return (await store.readDocs({ kind: KIND, ids: undefined, after: '', n: MOST_KEYS })).docs
  }

  #tell(): void {
    for (const hear of this.#ears) hear()
  }
}

/** That this store has the key that is asked for, without saying anything of it. Undefined: it has not. */
export async function provedKey(store: Store, asked: string): Promise<string | undefined> {
  const question = readQuestion(asked)
  const kept = question === undefined ? undefined : await keptKey(store, question.id)
  return question === undefined || kept === undefined ? undefined : proofOf(kept.hash, question.word)
}

async function keptKey(store: Store, id: string): Promise<(Key & { readonly hash: string }) | undefined> {
  const { docs } = await store.readDocs({ kind: KIND, ids: [id], after: '', n: 1 })
  return docs[0] === undefined ? undefined : keyOf(docs[0])
}

function isOperator(doc: Doc): boolean {
  return keyOf(doc).role === 'operate'
}

/** Written as it is: whoever removes it at the same moment is too late, or we are. */
function asItIs(doc: Doc | undefined): readonly Write[] {
  return doc === undefined ? [] : [{ kind: doc.kind, id: doc.id, ifRev: doc.rev, body: doc.body }]
}

function keyOf(doc: Doc): Key & { readonly hash: string } {
  return { id: doc.id, ...(JSON.parse(Buffer.from(doc.body).toString()) as KeptKey) }
}

function invalid(what: string): SluiceError {
  return new SluiceError('REQUEST_INVALID', `keys: ${what}`)
}
