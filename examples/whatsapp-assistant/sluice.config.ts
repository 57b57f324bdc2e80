// What `sluice dev` and `sluice start` run: the assistant on the real services. README.md lists the variables.
import { production } from '../kit/production.ts'
import { build } from './assistant.ts'

export default build(
  production({
    store: 'sqlite:assistant.db',
    urls: {
      meta: 'https://graph.facebook.com',
      twilio: 'https://api.twilio.com',
      'twilio-typing': 'https://messaging.twilio.com',
      model: 'https://api.openai.com',
    },
  }),
)
