// Next.js replaces `process.env.NEXT_RUNTIME` by its value when it builds, but not `process.env['NEXT_RUNTIME']`.
declare namespace NodeJS {
  interface ProcessEnv {
    NEXT_RUNTIME?: 'nodejs' | 'edge'
  }
}
