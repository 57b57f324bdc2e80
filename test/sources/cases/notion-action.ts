// A valid "Send webhook" action of Notion with its header, and the expected result of each fault. Nothing is signed.
import { notionAction } from '../../../src/sources/notion-action.ts'
import { requestOf, type SourceCase } from '../faults.ts'

const BODY = JSON.stringify({
  source: { type: 'automation', event_id: '9d2f1f4e-3c2b-4a57-8f0e-6f5f8d7c1a11', attempt: 1 },
  data: {
    object: 'page',
    id: '153104cd-477e-809d-8dc4-ff2d96ae3090',
    parent: { type: 'database_id', database_id: '36cc9195-760f-4fff-a67e-3a46c559b176' },
    properties: { Assignee: { people: [{ id: 'c7c11cca-1d73-471d-9b6e-bdef51470190', name: 'Ada' }] } },
  },
})

export const cases: readonly SourceCase[] = [
  {
    name: 'notion-action',
    build: (secret) => notionAction({ header: 'X-Secret', secret }),
    secret: 'correct horse battery staple',
    wrongSecret: 'correct horse battery stapler',
    request: (secret) => requestOf({ body: BODY, headers: { 'x-secret': secret } }),
    expected: {
      bodyChanged: ['accepted', 'BODY_NOT_UNDERSTOOD'],
      headerChanged: { 'x-secret': 'CREDENTIALS_WRONG' },
      headerMissing: { 'x-secret': 'CREDENTIALS_MISSING' },
      wrongSecret: 'CREDENTIALS_WRONG',
      old: 'accepted',
      future: 'accepted',
      replayed: 'duplicate',
      contentType: 'accepted',
    },
    isForged: (request, genuine) => request.headers['x-secret'] !== genuine.headers['x-secret'],
  },
]
