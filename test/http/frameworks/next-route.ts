// docs/frameworks.md: as a route handler of Next.js.
import app from './sluice.config.ts'

export const runtime = 'nodejs'

export async function POST(request: Request): Promise<Response> {
  // Starts the app once. It is not started at the top, because `next build` loads this file as well.
  await app.start()
  return app.fetch(request)
}

// Meta and Strava send handshakes as GET, CloudEvents as OPTIONS.
export { POST as GET, POST as OPTIONS }
