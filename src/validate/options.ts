// Checks of options and arguments at run time, because callers in plain JavaScript have no type checker. An error names
// the option or argument, the rule and what the caller passed.
import { SluiceError } from '../errors.ts'
import { suggestName } from './closest-name.ts'

export function invalidOption(message: string): SluiceError {
  return new SluiceError('CONFIG_INVALID', message)
}

export function assertWholeNumber(value: number, least: number, option: string, hint = ''): number {
  if (Number.isSafeInteger(value) && value >= least) return value
  throw invalidOption(`${option} must be a whole number of at least ${least}${hint}; got ${String(value)}.`)
}

/** `assertKnownOptions` rejects unknown options, so that a misspelled option is an error and not ignored. `where` precedes
    the option's name in the message, e.g. `new Sluice: `. */
export function assertKnownOptions<Options extends object>(
  options: Options,
  known: readonly (keyof Options)[] | ReadonlySet<string>,
  where: string,
): void {
  if (!isObject(options)) {
    const subject = where.endsWith('.') ? where.slice(0, -1) : `${where}the options`
    throw invalidOption(`${subject} must be an object; got ${describeKind(options)}.`)
  }
  const names: readonly PropertyKey[] = [...known]
  const unknown = Object.keys(options).find((option) => !names.includes(option))
  if (unknown === undefined) return
  const guess = suggestName(unknown, names.map(String))
  throw invalidOption(`${where}${unknown} is not an option.${guess} The options are ${names.join(', ')}.`)
}

/** A member whose name ends in `?` is optional. */
interface Shapes {
  readonly [name: string]: Shape
}

type Scalar = 'text' | 'count' | 'millis' | 'object' | 'textOrObject' | 'anything'
/** A list means that the value must be one of its strings. */
type Shape = Scalar | Shapes | readonly string[]

const isText = (value: unknown): boolean => typeof value === 'string' && value.isWellFormed()
export function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const SCALARS: Readonly<Record<Scalar, { readonly fits: (value: unknown) => boolean; readonly is: string }>> = {
  text: { fits: isText, is: 'text' },
  count: { fits: (value) => Number.isSafeInteger(value) && Number(value) > 0, is: 'a whole number of at least 1' },
  millis: { fits: (value) => Number.isFinite(value), is: 'a number of milliseconds since 1970' },
  object: { fits: isObject, is: 'an object' },
  textOrObject: { fits: (value) => isText(value) || isObject(value), is: 'text or an object' },
  anything: { fits: () => true, is: 'anything' },
}

/** `Members` lists the arguments of each member, in order. */
export type ArgumentShapes<Face> = { readonly [Name in keyof Face]?: Shapes }

/** `checked` makes each listed member check its arguments. The members must return promises, because a bad call rejects. */
export function withArgumentChecks<Face extends object>(
  face: Face,
  called: string,
  members: ArgumentShapes<Face>,
): Face {
  for (const [name, shapes] of Object.entries<Shapes | undefined>(members)) {
    const member = Reflect.get(face, name) as (...given: unknown[]) => unknown
    const value = async (...given: unknown[]): Promise<unknown> => {
      assertArguments(given, shapes ?? {}, `${called}.${name}: `)
      return member.apply(face, given)
    }
    // Writable like a method, so that a test can replace the member.
    Object.defineProperty(face, name, { value, writable: true, configurable: true })
  }
  return face
}

export function assertArguments(values: readonly unknown[], shapes: Shapes, where: string): void {
  for (const [at, [of, shape]] of Object.entries(shapes).entries()) assertShape(values[at], of, shape, where)
}

function assertShape(value: unknown, of: string, shape: Shape, where: string): void {
  const name = of.replace('?', '')
  if (value === undefined && of.endsWith('?')) return
  const invalid = (is: string): SluiceError =>
    new SluiceError('CONFIG_INVALID', `${where}${name} must be ${is}; got ${describeKind(value)}.`)
  if (typeof shape === 'string') {
    if (!SCALARS[shape].fits(value)) throw invalid(SCALARS[shape].is)
    return
  }
  if (isWordList(shape)) {
    if (!shape.includes(value as string)) throw invalid(shape.join(' or '))
    return
  }
  if (!isObject(value)) {
    const members = Object.keys(shape).join(', ').replaceAll('?', '')
    throw invalid(`an object with ${members}`)
  }
  for (const [member, inner] of Object.entries(shape)) {
    assertShape((value as Record<string, unknown>)[member.replace('?', '')], `${name}.${member}`, inner, where)
  }
}

function isWordList(shape: Shape): shape is readonly string[] {
  return Array.isArray(shape)
}

/** `describeTexts` describes a value that is not non-empty text or a list of it, without its content. */
export function describeTexts(value: unknown): string {
  const list: readonly unknown[] = Array.isArray(value) ? value : [value]
  if (list.length === 0) return 'an empty list'
  const wrong = list.filter((one) => typeof one !== 'string')
  return wrong.length === 0 ? 'empty text' : describeKind(wrong[0])
}

/** `describeKind` describes a value without its content, which may be a secret passed in the wrong place. */
export function describeKind(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (value === null || typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (typeof value === 'string') return isText(value) ? 'text' : 'text that is not well-formed Unicode'
  return Array.isArray(value) ? 'a list' : typeof value === 'object' ? 'an object' : `a ${typeof value}`
}
