// Which events a flow is for: globs over `source/type`; one without a slash is over the type alone.
import { SluiceError } from '../errors.ts'

interface Named {
  readonly source: string
  readonly type: string
}

/** `*` is any run of characters but a slash, `**` of any at all. */
export function matcher(globs: readonly string[], option: string): (event: Named) => boolean {
  if (globs.length === 0) throw new SluiceError('CONFIG_INVALID', `${option} is empty; name a type, or '**' for all.`)
  const patterns = globs.map((glob) => {
    if (typeof glob !== 'string' || glob === '') {
      throw new SluiceError(
        'CONFIG_INVALID',
        `${option} has ${JSON.stringify(glob)}; a glob is text like 'shop/order.*'.`,
      )
    }
    return { whole: glob.includes('/') || glob === '**', pattern: patternOf(glob) }
  })
  return ({ source, type }) => patterns.some(({ whole, pattern }) => pattern.test(whole ? `${source}/${type}` : type))
}

function patternOf(glob: string): RegExp {
  const parts = glob.split(/(\*\*|\*)/)
  const text = parts.map((part) =>
    part === '**' ? '.*' : part === '*' ? '[^/]*' : part.replaceAll(/[^\w\s]/gu, String.raw`\$&`),
  )
  return new RegExp(`^${text.join('')}$`, 's')
}
