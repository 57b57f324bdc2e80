// `sluice endpoints transform`: the code of a subscriber that changes what its endpoint gets.
import type { EndpointTransform, TransformTestResult } from '../../deliver/transform/transforms.ts'
import type { TransformVersion } from '../../deliver/transform/versions.ts'
import {
  callAndConfirm,
  callAndPrint,
  reportMisuse,
  textOptions,
  type Command,
  type CommandContext,
} from '../command.ts'
import { EXIT } from '../exit.ts'
import { escapeLines, escapeText, formatCount, formatTime } from '../output.ts'
import { endpointPath } from './endpoint-actions.ts'
import { readText } from './endpoints-fields.ts'

const VERSION_OPTION = 'number of a kept version'

export const endpointTransformCommands: readonly Command[] = [
  {
    name: 'endpoints transform show',
    positionals: ['<id>'],
    description: 'print the transformation of an endpoint',
    options: textOptions({ version: `${VERSION_OPTION}; default the one that is used` }),
    run: (context) =>
      callAndPrint(context, { method: 'GET', path: endpointPath(context, 'transform') }, (it: EndpointTransform) => {
        const wanted = Number(context.args.text('version') ?? it.current?.version)
        const shown = it.versions.find(({ version }) => version === wanted)
        if (shown === undefined) return context.output.note('There is no such transformation.')
        context.output.print(escapeLines(shown.code))
        context.output.note(describeVersion(shown))
      }),
  },
  {
    name: 'endpoints transform versions',
    positionals: ['<id>'],
    description: 'list the kept versions of a transformation',
    run: (context) =>
      callAndPrint(context, { method: 'GET', path: endpointPath(context, 'transform') }, (it: EndpointTransform) =>
        context.output.table<TransformVersion>(
          [
            'version',
            { title: 'is', cell: ({ version }) => (version === it.current?.version ? 'used' : '') },
            { title: 'at', cell: ({ at }) => formatTime(at) },
            'by',
            { title: 'bytes', cell: ({ code }) => Buffer.byteLength(code) },
          ],
          it.versions,
          'There is no transformation.',
        ),
      ),
  },
  {
    name: 'endpoints transform set',
    positionals: ['<id>', '[file]'],
    description: 'set the transformation of an endpoint from a file, or from standard input with -',
    options: textOptions({ version: `${VERSION_OPTION} to set again, instead of a file` }),
    run: async (context) => {
      const body = readCode(context)
      if (Object.keys(body).length !== 1) return reportMisuse(context, 'Pass a file, or --version=N.')
      const call = { method: 'POST', path: endpointPath(context, 'transform'), body } as const
      return callAndPrint(context, call, (made: TransformVersion) =>
        context.output.print(`Done. Version ${made.version} is used from the next attempt on.`),
      )
    },
  },
  {
    name: 'endpoints transform remove',
    positionals: ['<id>'],
    description: 'remove the transformation of an endpoint; its versions stay',
    run: (context) => callAndConfirm(context, { method: 'DELETE', path: endpointPath(context, 'transform'), body: {} }),
  },
  {
    name: 'endpoints transform test',
    positionals: ['<id>', '[file]'],
    description: 'run a transformation on one event and post nothing; exit code 1 if it fails',
    options: textOptions({
      version: `${VERSION_OPTION}; default the one that is used`,
      event: 'id of a stored event; default a test event',
      type: 'type of an event that is not stored',
      data: 'data of that event, as JSON',
    }),
    run: async (context) => {
      const sample = readSample(context)
      if (typeof sample === 'string') return reportMisuse(context, sample)
      const body = { ...readCode(context), ...context.args.texts(['event']), ...sample }
      const call = { method: 'POST', path: `${endpointPath(context, 'transform')}/test`, body } as const
      const print = (result: TransformTestResult): void => printResult(context, result)
      return callAndPrint(context, call, print, ({ error }) => (error === '' ? EXIT.done : EXIT.failed))
    },
  },
]

function readCode({ args }: CommandContext): { readonly code?: string; readonly version?: number } {
  const [, file] = args.words
  const version = args.text('version')
  return {
    ...(file !== undefined && { code: readText(file) }),
    ...(version !== undefined && { version: Number(version) }),
  }
}

/** Returns the event to test with, or what is wrong with it. */
function readSample({ args }: CommandContext): { readonly sample?: object } | string {
  const [type, data] = [args.text('type'), args.text('data')]
  if (type === undefined) return data === undefined ? {} : 'Pass --type with --data.'
  try {
    return { sample: { type, ...(data !== undefined && { data: JSON.parse(data) as unknown }) } }
  } catch {
    return '--data must be JSON.'
  }
}

function printResult(
  { output: out }: CommandContext,
  { console, error, body, contentType = '', ms }: TransformTestResult,
): void {
  for (const line of console) out.note(`console: ${escapeText(line)}`)
  if (error !== '') return out.print(`Failed after ${ms} ms: ${escapeText(error)}`)
  if (body === undefined) return out.print(`It returned nothing after ${ms} ms, so nothing would be posted.`)
  out.print(escapeLines(body))
  out.note(`${formatCount(Buffer.byteLength(body), 'byte')} of ${escapeText(contentType)} after ${ms} ms.`)
}

function describeVersion({ version, at, by }: TransformVersion): string {
  return `Version ${version}, set${by === '' ? '' : ` by ${escapeText(by)}`} at ${formatTime(at) ?? ''}.`
}
