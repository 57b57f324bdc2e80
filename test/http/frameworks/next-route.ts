// docs/frameworks.md: as a route handler of Next.js.
import { app } from './sluice.config.ts'

export const runtime = 'nodejs'

export function POST(request: Request): Promise<Response> {
  return app.fetch(request)
}

// Meta and Strava send handshakes as GET, CloudEvents as OPTIONS.
export { POST as GET, POST as OPTIONS }
