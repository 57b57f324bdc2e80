// `sluice sources`: the sources, the requests they refused, and the secret that came by handshake.
import type { SourceView } from '../../admin/sources.ts'
import type { RefusedRequest } from '../../receive/refused-requests.ts'
import { toPath } from '../api-client.ts'
import { callAndPrint, confirmOrExit, listCommand, YES_OPTION, type Command } from '../command.ts'
import { escapeText, formatTime } from '../output.ts'

export const sources: readonly Command[] = [
  listCommand<SourceView>({
    name: 'sources list',
    description: 'list sources and their paths',
    path: '/v1/sources',
    columns: [{ title: 'source', cell: ({ name }) => name }, 'scheme', 'path'],
    none: 'The app has no sources.',
  }),
  listCommand<RefusedRequest>({
    name: 'sources refused',
    positionals: ['<source>'],
    description: 'list the requests that a source rejected, with the reason; - for requests to an unknown source',
    path: (context) => toPath('v1/sources', context.args.words[0] ?? '', 'refused'),
    columns: [
      { title: 'at', cell: ({ at }) => formatTime(at) },
      { title: 'from', cell: ({ address }) => address },
      'code',
      { title: 'what', cell: ({ what, fix }) => `${what} ${fix}` },
    ],
    none: 'No requests were rejected.',
  }),
  {
    name: 'sources secret',
    positionals: ['<source>'],
    description: 'print the secret from the handshake, to compare it with that of the provider',
    run: (context) => {
      const path = toPath('v1/sources', context.args.words[0] ?? '', 'show-secret')
      return callAndPrint(context, { method: 'POST', path, body: {} }, ({ secret }: { readonly secret?: string }) => {
        context.output.print(escapeText(secret ?? 'There has been no handshake yet.'))
      })
    },
  },
  {
    name: 'sources forget',
    positionals: ['<source>'],
    description: 'forget the secret; the source waits for another handshake',
    options: { yes: YES_OPTION },
    run: async (context) => {
      const [name = ''] = context.args.words
      const no = await confirmOrExit(
        context,
        `This makes ${name} reject all requests until another handshake. Continue?`,
      )
      if (no !== undefined) return no
      const path = toPath('v1/sources', name, 'forget-secret')
      return callAndPrint(context, { method: 'POST', path, body: {} }, () => context.output.print('Done.'))
    },
  },
]
