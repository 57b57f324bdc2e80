// Types end where JavaScript begins: what a caller without them leaves out or mixes up is named here, before a store could only say
// that it failed.
import { SluiceError } from '../errors.ts'

/** A member whose name ends in `?` may be left out. */
interface Shapes {
  readonly [name: string]: Shape
}

type Scalar = 'text' | 'count' | 'millis' | 'object' | 'textOrObject' | 'anything'
/** A list: one of these words. */
type Shape = Scalar | Shapes | readonly string[]

const isText = (value: unknown): boolean => typeof value === 'string' && value.isWellFormed()
export function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const SCALARS: Readonly<Record<Scalar, { readonly fits: (value: unknown) => boolean; readonly is: string }>> = {
  text: { fits: isText, is: 'text' },
  count: { fits: (value) => Number.isSafeInteger(value) && Number(value) > 0, is: 'a whole number above 0' },
  millis: { fits: (value) => Number.isFinite(value), is: 'milliseconds since 1970' },
  object: { fits: isObject, is: 'an object' },
  textOrObject: { fits: (value) => isText(value) || isObject(value), is: 'text or an object' },
  anything: { fits: () => true, is: 'anything' },
}

/** For each member what it takes, in that order. */
export type Members<Face> = { readonly [Name in keyof Face]?: Shapes }

/** Only for members that answer with a promise: that is what is rejected. */
export function checked<Face extends object>(face: Face, called: string, members: Members<Face>): Face {
  for (const [name, shapes] of Object.entries<Shapes | undefined>(members)) {
    const member = Reflect.get(face, name) as (...given: unknown[]) => unknown
    const value = async (...given: unknown[]): Promise<unknown> => {
      mustFit(given, shapes ?? {}, `${called}.${name}: `)
      return member.apply(face, given)
    }
    // As a method is: a test may put another in its place.
    Object.defineProperty(face, name, { value, writable: true, configurable: true })
  }
  return face
}

export function mustFit(given: readonly unknown[], shapes: Shapes, where: string): void {
  for (const [at, [of, shape]] of Object.entries(shapes).entries()) mustBe(given[at], of, shape, where)
}

function mustBe(value: unknown, of: string, shape: Shape, where: string): void {
  const name = of.replace('?', '')
  if (value === undefined && of.endsWith('?')) return
  const invalid = (is: string): SluiceError =>
    new SluiceError('CONFIG_INVALID', `${where}${name} is ${said(value)}; it is ${is}.`)
  if (typeof shape === 'string') {
    if (!SCALARS[shape].fits(value)) throw invalid(SCALARS[shape].is)
    return
  }
  if (isWords(shape)) {
    if (!shape.includes(value as string)) throw invalid(shape.join(' or '))
    return
  }
  if (!isObject(value)) {
    const members = Object.keys(shape).join(', ').replaceAll('?', '')
    throw invalid(`an object with ${members}`)
  }
  for (const [member, inner] of Object.entries(shape)) {
    mustBe((value as Record<string, unknown>)[member.replace('?', '')], `${name}.${member}`, inner, where)
  }
}

function isWords(shape: Shape): shape is readonly string[] {
  return Array.isArray(shape)
}

/** What it is, and nothing of what is in it: it may be a secret in the wrong place. */
export function said(value: unknown): string {
  if (value === undefined) return 'missing'
  if (value === null || typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (typeof value === 'string') return isText(value) ? 'text' : 'text that is not well-formed'
  return Array.isArray(value) ? 'a list' : `of type ${typeof value}`
}
