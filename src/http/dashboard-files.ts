// `DashboardFiles` serves the built files of the dashboard from memory, with headers that forbid anything foreign in the
// page.
import { hash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { brotliCompress, gzip } from 'node:zlib'

interface StaticFile {
  readonly bytes: Buffer
  readonly type: string
  readonly etag: string
  /** The compressed forms that were requested so far. */
  readonly compressed: Map<Encoding, Promise<Buffer>>
}

type Encoding = keyof typeof COMPRESSORS

const COMPRESSORS = { br: promisify(brotliCompress), gzip: promisify(gzip) } as const

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.woff2': 'font/woff2',
}

/** Images and fonts are compressed already. */
const IS_TEXT = /^(?:text\/|application\/json|image\/svg)/

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'self'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': POLICY,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}

const INDEX = 'index.html'
/** The names of the files below it contain a hash of their content. */
const ASSETS = 'assets/'
const NOT_BUILT = 'The dashboard is not built. Run npm run build in the folder of sluice.\n'

export class DashboardFiles {
  #files: ReadonlyMap<string, StaticFile> | undefined

  /** `respond` serves the file at a path below the mount; the app's page answers all paths that are no file. */
  async respond(method: string, path: string, headers: Readonly<Record<string, string>>): Promise<Response> {
    if (method !== 'GET' && method !== 'HEAD') {
      return toTextResponse(405, 'The dashboard supports only GET.\n', { allow: 'GET, HEAD' })
    }
    this.#files ??= readBuiltFiles()
    const file = path === INDEX ? undefined : this.#files.get(path)
    if (file === undefined && path.startsWith(ASSETS)) return toTextResponse(404, 'There is no such file.\n')
    const found = file ?? this.#pageAt(path)
    if (found === undefined) return toTextResponse(503, NOT_BUILT)
    const shown = await compress(found, file === undefined ? '' : (headers['accept-encoding'] ?? ''))
    const sent = {
      ...HEADERS,
      'cache-control': path.startsWith(ASSETS) ? 'public, max-age=31536000, immutable' : 'no-cache',
      'content-type': found.type,
      etag: found.etag,
      vary: 'accept-encoding',
      ...(shown.encoding !== undefined && { 'content-encoding': shown.encoding }),
    }
    if (matchesEtag(headers['if-none-match'], found.etag)) return new Response(null, { status: 304, headers: sent })
    const body = method === 'HEAD' ? null : new Uint8Array(shown.bytes)
    return new Response(body, { headers: { ...sent, 'content-length': String(shown.bytes.length) } })
  }

  /**
   * The page with a `<base>` that leads from this path back to the mount. The base is relative, so it is right under
   * every prefix that a proxy or a framework adds or removes.
   */
  #pageAt(path: string): StaticFile | undefined {
    const index = this.#files?.get(INDEX)
    if (index === undefined) return undefined
    const base = '../'.repeat(path.split('/').length - 1) || './'
    return toFile(INDEX, Buffer.from(index.bytes.toString().replace('<head>', `<head>\n    <base href="${base}" />`)))
  }
}

/** The files are beside the compiled code, or in dist/ when the source itself runs. */
function readBuiltFiles(): ReadonlyMap<string, StaticFile> {
  const folders = ['../dashboard/', '../../dist/dashboard/'].map((path) =>
    fileURLToPath(new URL(path, import.meta.url)),
  )
  const folder = folders.find((path) => existsSync(join(path, INDEX)))
  if (folder === undefined) return new Map()
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return new Map(
    entries.map((entry) => {
      const file = join(entry.parentPath, entry.name)
      const name = relative(folder, file).split(sep).join('/')
      return [name, toFile(name, readFileSync(file))]
    }),
  )
}

function toFile(name: string, bytes: Buffer): StaticFile {
  const type = TYPES[extname(name)] ?? 'application/octet-stream'
  return { bytes, type, etag: `"${hash('sha256', bytes, 'base64url').slice(0, 22)}"`, compressed: new Map() }
}

interface Compressed {
  readonly bytes: Buffer
  readonly encoding?: Encoding
}

async function compress({ bytes, type, compressed }: StaticFile, accepted: string): Promise<Compressed> {
  const encoding = IS_TEXT.test(type) ? chooseEncoding(accepted) : undefined
  if (encoding === undefined) return { bytes }
  const known = compressed.get(encoding) ?? COMPRESSORS[encoding](bytes)
  compressed.set(encoding, known)
  return { bytes: await known, encoding }
}

function chooseEncoding(accepted: string): Encoding | undefined {
  const offered = accepted.split(',').map((one) => one.trim().toLowerCase())
  const isOffered = (name: string): boolean =>
    offered.some((one) => one === name || new RegExp(`^${name};q=(?!0(?:\\.0*)?$)`).test(one))
  return isOffered('br') ? 'br' : isOffered('gzip') ? 'gzip' : undefined
}

/** A proxy that compresses by itself marks the tag as weak. */
function matchesEtag(value: string | undefined, etag: string): boolean {
  return value !== undefined && value.split(',').some((one) => one.trim().replace(/^W\//, '') === etag)
}

function toTextResponse(status: number, text: string, headers: Readonly<Record<string, string>> = {}): Response {
  const sent = { ...HEADERS, 'cache-control': 'no-store', 'content-type': 'text/plain; charset=utf-8', ...headers }
  return new Response(text, { status, headers: sent })
}
