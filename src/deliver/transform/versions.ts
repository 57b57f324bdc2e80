// `TransformVersions` keeps the latest versions of each endpoint's transformation in one document. A version never changes;
// the endpoint names the one that is used.
import type { Millis } from '../../clock.ts'
import { SluiceError } from '../../errors.ts'
import type { Doc, Store } from '../../store/contract/index.ts'
import { changeDoc, parseDoc, readDoc, toDocBody } from '../../store/documents.ts'

export interface TransformVersion {
  /** Counts from 1. */
  readonly version: number
  readonly at: Millis
  /** Who set it. */
  readonly by: string
  readonly code: string
}

const KIND = 'endpoint-transform'
const KEPT_VERSIONS = 10
const MAX_CACHED = 200

export class TransformVersions {
  readonly #store: () => Promise<Store>
  readonly #cache = new Map<string, string>()

  constructor(store: () => Promise<Store>) {
    this.#store = store
  }

  /** `list` returns the oldest version first. */
  async list(endpoint: string): Promise<readonly TransformVersion[]> {
    return toVersions((await readDoc(await this.#store(), KIND, endpoint)).doc)
  }

  /** `add` returns the new version, or the newest one if it has the same code. */
  async add(endpoint: string, code: string, by: string): Promise<TransformVersion> {
    const what = { kind: KIND, id: endpoint, title: `the transformation of endpoint ${endpoint}` }
    return changeDoc(await this.#store(), what, (doc, now) => {
      const versions = toVersions(doc)
      const newest = versions.at(-1)
      if (newest?.code === code) return { result: newest }
      const result = { version: (newest?.version ?? 0) + 1, at: now, by, code }
      return { body: toDocBody([...versions, result].slice(-KEPT_VERSIONS)), result }
    })
  }

  async forget(endpoint: string): Promise<void> {
    const what = { kind: KIND, id: endpoint, title: `the transformation of endpoint ${endpoint}` }
    await changeDoc(await this.#store(), what, () => ({ body: undefined, result: undefined }))
  }

  /** `readCode` returns the code of one version for a delivery. */
  async readCode(endpoint: string, version: number): Promise<string> {
    const name = `${endpoint} ${version}`
    const known = this.#cache.get(name)
    if (known !== undefined) return known
    const { code } = findVersion(await this.list(endpoint), version)
    const [oldest] = this.#cache.keys()
    if (this.#cache.size >= MAX_CACHED && oldest !== undefined) this.#cache.delete(oldest)
    this.#cache.set(name, code)
    return code
  }
}

export function findVersion(versions: readonly TransformVersion[], version: number): TransformVersion {
  const found = versions.find((one) => one.version === version)
  if (found !== undefined) return found
  const kept = versions.map((one) => one.version).join(', ') || 'none'
  throw new SluiceError('NOT_FOUND', `The transformation has no version ${version}. Kept are ${kept}.`)
}

function toVersions(doc: Doc | undefined): readonly TransformVersion[] {
  return doc === undefined ? [] : (parseDoc(doc) as readonly TransformVersion[])
}
