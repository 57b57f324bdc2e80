// A valid event of a Notion integration, signed with the verification token, and the expected result of each fault.
import { createHmac } from 'node:crypto'
import { notion } from '../../../src/sources/notion.ts'
import { requestOf, type SourceCase } from '../faults.ts'

const BODY = JSON.stringify({
  id: '367cba44-b6f3-4c92-81e7-6a2e9659efd4',
  timestamp: '2025-12-05T23:55:34.285Z',
  workspace_id: '13950b26-c203-4f3b-b97d-93ec06319565',
  workspace_name: 'Quify',
  subscription_id: '29d75c0d-5546-4414-8459-7b7a92f1fc4b',
  integration_id: '0ef2e755-4912-8096-91c1-00376a88a5ca',
  type: 'page.properties_updated',
  authors: [{ id: 'c7c11cca-1d73-471d-9b6e-bdef51470190', type: 'person' }],
  attempt_number: 1,
  api_version: '2025-09-03',
  entity: { id: '153104cd-477e-809d-8dc4-ff2d96ae3090', type: 'page' },
  data: { parent: { id: '36cc9195-760f-4fff-a67e-3a46c559b176', type: 'database' }, updated_properties: ['XGe%40'] },
})

export const cases: readonly SourceCase[] = [
  {
    name: 'notion',
    build: (secret) => notion({ secret }),
    secret: 'secret_tMrlL1qK5vuQAh1b6cZGhFChZTSYJlce98V0pYn7yBl',
    wrongSecret: 'secret_tMrlL1qK5vuQAh1b6cZGhFChZTSYJlce98V0pYn7yBm',
    request: (secret) =>
      requestOf({
        body: BODY,
        headers: { 'x-notion-signature': `sha256=${createHmac('sha256', secret).update(BODY).digest('hex')}` },
      }),
    expected: {
      bodyChanged: 'SIGNATURE_WRONG',
      headerChanged: { 'x-notion-signature': 'SIGNATURE_WRONG' },
      headerMissing: { 'x-notion-signature': 'SIGNATURE_MISSING' },
      wrongSecret: 'SIGNATURE_WRONG',
      // Notion signs only the body. Its timestamp is the time of the change, and Notion retries for a day.
      old: 'accepted',
      future: 'accepted',
      replayed: 'duplicate',
      contentType: 'accepted',
    },
  },
]
