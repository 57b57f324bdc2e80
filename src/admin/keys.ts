// `Keys` manages the keys of the admin API. Each key has a role, is shown once and is stored as a hash, so a reader
// of the store cannot use it.
import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import { hashKey, parseKeyId, computeKeyProof, parseKeyChallenge, type ServerAddress } from '../crypto/key-proof.ts'
import type { Doc, Store, WriteDocsCall } from '../store/contract/index.ts'

/** A key with the role `register` can create endpoints of its own tenant, and nothing else. */
export type KeyRole = 'read' | 'publish' | 'register' | 'operate'

export interface ApiKey {
  readonly id: string
  /** The name of the key's user in the audit log. */
  readonly name: string
  readonly role: KeyRole
  /** Only with the role `register`: the tenant of the endpoints that the key can create. */
  readonly tenant?: string
  readonly created: Millis
  readonly by: string
}

export interface NewApiKey extends ApiKey {
  /** Shown only in this result. */
  readonly secret: string
}

interface StoredApiKey extends Omit<ApiKey, 'id'> {
  readonly hash: string
}

/** The name in the audit log for a local caller without a key. No key may have it. */
export const LOOPBACK_ACTOR = 'loopback'

const KIND = 'key'
/** Documents that reserve the name of a key, so that two concurrent calls cannot both take it. */
const NAME_KIND = 'key-name'
const PREFIX = 'slk'
const MAX_KEYS = 1_000
const ROLES: ReadonlySet<unknown> = new Set<KeyRole>(['read', 'publish', 'register', 'operate'])
const NAME = /^[\w][\w .@-]{0,99}$/u

type DocumentWrite = WriteDocsCall['writes'][number]

interface NewApiKeyOptions {
  readonly name: string
  readonly role: KeyRole
  /** Required with the role `register`, and rejected with the others. '' means endpoints without a tenant. */
  readonly tenant?: string
  readonly by?: string
}

export class Keys {
  readonly #store: () => Promise<Store>
  readonly #listeners = new Set<() => void>()

  constructor(store: () => Promise<Store>) {
    this.#store = store
  }

  /** `onChange` is called in this process when a key is created or revoked. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener)
  }

  async create(options: NewApiKeyOptions): Promise<NewApiKey> {
    const { name, role, tenant, by = '' } = options
    if (typeof name !== 'string' || !NAME.test(name)) {
      throw invalid(
        'name must have 1 to 100 letters, digits, spaces and . @ _ -, and start with a letter, a digit or _.',
      )
    }
    if (name.toLowerCase() === LOOPBACK_ACTOR)
      throw invalid(
        `name must not be ${name}, which names local callers without a key in the audit log. Choose another name.`,
      )
    if (!ROLES.has(role))
      throw invalid(`role must be 'read', 'publish', 'register' or 'operate'; got ${JSON.stringify(role)}.`)
    assertKeyTenant(role, tenant)
    const store = await this.#store()
    const known = await this.#readAll(store)
    if (known.length >= MAX_KEYS) throw invalid(`there are already ${MAX_KEYS} keys. Revoke one first.`)
    const operator = known.find(isOperator)
    if (role !== 'operate' && operator === undefined) {
      throw new SluiceError(
        'OPERATOR_KEY_REQUIRED',
        `The first key must have the role operate, because a key with the role ${role} cannot create others.`,
      )
    }
    const id = randomBytes(6).toString('hex')
    const random = randomBytes(32).toString('base64url')
    const secret = `${PREFIX}_${id}_${random}`
    const { now } = await store.readDocs({ kind: KIND, ids: [id], after: '', n: 1 })
    const facts = { name, role, ...(tenant !== undefined && { tenant }), created: now, by }
    const stored: StoredApiKey = { ...facts, hash: hashKey(secret) }
    const writes = [
      { kind: KIND, id, ifRev: 0, body: Buffer.from(JSON.stringify(stored)) },
      { kind: NAME_KIND, id: name, ifRev: 0, body: Buffer.from(id) },
      ...(role !== 'operate' ? unchangedWrite(operator) : []),
    ]
    const what = `created the key ${name} with the role ${role}${tenant === undefined ? '' : ` for the tenant ${JSON.stringify(tenant)}`}`
    const reply = await store.writeDocs({ writes, raiseRoutes: false, audit: { who: by, what } })
    if (reply.kind === 'written') {
      this.#notifyListeners()
      return { id, ...facts, secret }
    }
    // Write 2 is the operator key, which a concurrent call has changed. Write 1 is the name, which another key has.
    if (reply.at > 1) return this.create(options)
    throw invalid(`name must be new; got ${JSON.stringify(name)}, which another key has. Choose another name.`)
  }

  async list(): Promise<readonly ApiKey[]> {
    const docs = await this.#readAll(await this.#store())
    return docs.map(parseApiKey).map(({ hash: _hash, ...key }) => key)
  }

  /** `revoke` takes an id or a name. The key is rejected from then on. */
  async revoke(which: string, by = ''): Promise<'ok' | 'missing'> {
    const store = await this.#store()
    const docs = await this.#readAll(store)
    const doc = docs.find((one) => one.id === which) ?? docs.find((one) => parseApiKey(one).name === which)
    if (doc === undefined) return 'missing'
    const { name } = parseApiKey(doc)
    const others = docs.filter((one) => one !== doc)
    const operator = isOperator(doc) ? others.find(isOperator) : undefined
    if (isOperator(doc) && others.length > 0 && operator === undefined) {
      throw new SluiceError(
        'OPERATOR_KEY_REQUIRED',
        `${name} is the last key with the role operate, and other keys exist.`,
      )
    }
    const named = await store.readDocs({ kind: NAME_KIND, ids: [name], after: '', n: 1 })
    const gone = [doc, ...named.docs].map(({ kind, id, rev }) => ({ kind, id, ifRev: rev, body: undefined }))
    const writes = [...gone, ...unchangedWrite(operator)]
    const what = `revoked the key ${name}`
    const { kind } = await store.writeDocs({ writes, raiseRoutes: false, audit: { who: by, what } })
    // A concurrent call has changed this key, or the operator key that must remain.
    if (kind !== 'written') return this.revoke(doc.id, by)
    this.#notifyListeners()
    return 'ok'
  }

  /** `authenticate` returns the key that the secret belongs to, or undefined. It compares in constant time. */
  async authenticate(secret: string): Promise<ApiKey | undefined> {
    const id = parseKeyId(secret)
    const kept = id === undefined ? undefined : await readApiKey(await this.#store(), id)
    if (kept === undefined) return undefined
    const { hash, ...key } = kept
    return timingSafeEqual(Buffer.from(hashKey(secret)), Buffer.from(hash)) ? key : undefined
  }

  /** `find` returns the key with this id, or undefined. It proves nothing about the caller. */
  async find(id: string): Promise<ApiKey | undefined> {
    const kept = await readApiKey(await this.#store(), id)
    if (kept === undefined) return undefined
    const { hash: _hash, ...key } = kept
    return key
  }

  /** `hasAny` returns whether any key exists. Until then, only local callers are admitted. */
  async hasAny(): Promise<boolean> {
    const store = await this.#store()
    const { docs } = await store.readDocs({ kind: KIND, ids: undefined, after: '', n: 1 })
    return docs.length > 0
  }

  async #readAll(store: Store): Promise<readonly Doc[]> {
    return (await store.readDocs({ kind: KIND, ids: undefined, after: '', n: MAX_KEYS })).docs
  }

  #notifyListeners(): void {
    for (const listener of this.#listeners) listener()
  }
}

/** `proveApiKey` proves that this store has the key, without revealing it; undefined if the store does not have it. */
export async function proveApiKey(store: Store, challenge: string, at: ServerAddress): Promise<string | undefined> {
  const question = parseKeyChallenge(challenge)
  const kept = question === undefined ? undefined : await readApiKey(store, question.id)
  return question === undefined || kept === undefined ? undefined : computeKeyProof(kept.hash, question.word, at)
}

async function readApiKey(store: Store, id: string): Promise<(ApiKey & { readonly hash: string }) | undefined> {
  const { docs } = await store.readDocs({ kind: KIND, ids: [id], after: '', n: 1 })
  return docs[0] === undefined ? undefined : parseApiKey(docs[0])
}

const TENANT_LENGTH_MAX = 1_024

/** Without a tenant, a key would register endpoints of all tenants. */
function assertKeyTenant(role: KeyRole, tenant: unknown): void {
  if (role !== 'register') {
    if (tenant === undefined) return
    throw invalid(`tenant must be given with the role 'register' only; got the role '${role}'. Remove it.`)
  }
  if (typeof tenant === 'string' && tenant.isWellFormed() && tenant.length <= TENANT_LENGTH_MAX) return
  const rule = `tenant must be text of at most ${TENANT_LENGTH_MAX} characters with the role 'register'`
  throw invalid(`${rule}. Name the tenant whose endpoints the key may create; '' means none.`)
}

function isOperator(doc: Doc): boolean {
  return parseApiKey(doc).role === 'operate'
}

/** Writes the document unchanged at its revision, so that the commit fails if a concurrent call removes the document. */
function unchangedWrite(doc: Doc | undefined): readonly DocumentWrite[] {
  return doc === undefined ? [] : [{ kind: doc.kind, id: doc.id, ifRev: doc.rev, body: doc.body }]
}

function parseApiKey(doc: Doc): ApiKey & { readonly hash: string } {
  return { id: doc.id, ...(JSON.parse(Buffer.from(doc.body).toString()) as StoredApiKey) }
}

function invalid(message: string): SluiceError {
  return new SluiceError('REQUEST_INVALID', `keys: ${message}`)
}
