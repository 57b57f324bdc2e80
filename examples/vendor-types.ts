// The types of vendors' own packages for the events of their sources. `import type` leaves nothing of them at run time.
import type { IssuesOpenedEvent } from '@octokit/webhooks-types'
import type { SlackEventMiddlewareArgs } from '@slack/bolt'
import { defineEvent, Sluice } from 'sluice'
import { github, slack, stripe } from 'sluice/sources'
import type Stripe from 'stripe'

const paid = defineEvent<Stripe.InvoicePaidEvent>('stripe/invoice.paid')
const opened = defineEvent<IssuesOpenedEvent>('github/issues.opened')
const mentioned = defineEvent<SlackEventMiddlewareArgs<'app_mention'>['body']>('slack/app_mention')

export function build(secrets: Readonly<Record<'stripe' | 'github' | 'slack', string>>): Sluice {
  return new Sluice({ store: 'memory:', log: false })
    .source('stripe', stripe({ secret: secrets.stripe }))
    .source('github', github({ secret: secrets.github }))
    .source('slack', slack({ secret: secrets.slack }))
    .flow('book', {
      on: paid,
      key: (event) => event.data.data.object.id,
      run: ({ events: [first] }) => console.log(`paid ${first?.data.data.object.amount_paid}`),
    })
    .flow('triage', { on: opened, run: ({ events: [first] }) => console.log(first?.data.issue.title) })
    .flow('answer', { on: mentioned, run: ({ events: [first] }) => console.log(first?.data.event.text) })
}
