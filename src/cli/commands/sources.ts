// `sluice sources`: the ways in, what they refused, and the secret of one that got it by handshake.
import { pathOf } from '../caller.ts'
import { show, showPage, YES, type Command } from '../command.ts'
import { unconfirmed } from '../confirm.ts'
import { plain, time, type Column } from '../output.ts'

interface Source {
  readonly name: string
  readonly scheme: string
  readonly path: string
}

interface Refused {
  readonly at: number
  readonly code: string
  readonly what: string
  readonly fix: string
  readonly address: string
}

const SOURCES: readonly Column<Source>[] = [
  { title: 'source', cell: ({ name }) => name },
  { title: 'scheme', cell: ({ scheme }) => scheme },
  { title: 'path', cell: ({ path }) => path },
]

const REFUSED: readonly Column<Refused>[] = [
  { title: 'at', cell: ({ at }) => time(at) },
  { title: 'from', cell: ({ address }) => address },
  { title: 'code', cell: ({ code }) => code },
  { title: 'what', cell: ({ what, fix }) => `${what} ${fix}` },
]

export const sources: readonly Command[] = [
  {
    words: 'sources list',
    says: 'the ways in, and where they are',
    run: (scene) =>
      showPage(scene, { method: 'GET', path: '/v1/sources' }, (items: readonly Source[]) =>
        scene.out.table(SOURCES, items, 'The app has no sources.'),
      ),
  },
  {
    words: 'sources refused',
    takes: ['<source>'],
    says: 'the last requests that a source refused, and why; of - those to no source',
    run: (scene) => {
      const path = pathOf('v1/sources', scene.given.words[0] ?? '', 'refused')
      return showPage(scene, { method: 'GET', path }, (items: readonly Refused[]) =>
        scene.out.table(REFUSED, items, 'Nothing was refused.'),
      )
    },
  },
  {
    words: 'sources secret',
    takes: ['<source>'],
    says: 'the secret that came by handshake, to be compared with what the sending side shows',
    run: (scene) => {
      const path = pathOf('v1/sources', scene.given.words[0] ?? '', 'show-secret')
      return show(scene, { method: 'POST', path, body: {} }, ({ secret }: { readonly secret?: string }) => {
        scene.out.line(plain(secret ?? 'None has come by handshake.'))
      })
    },
  },
  {
    words: 'sources forget',
    takes: ['<source>'],
    says: 'let a source wait for another handshake',
    options: { yes: YES },
    run: async (scene) => {
      const [name = ''] = scene.given.words
      const no = await unconfirmed(scene, `${name} refuses everything until another handshake comes. Go on?`)
      if (no !== undefined) return no
      const path = pathOf('v1/sources', name, 'forget-secret')
      return show(scene, { method: 'POST', path, body: {} }, () => scene.out.line('Done.'))
    },
  },
]
