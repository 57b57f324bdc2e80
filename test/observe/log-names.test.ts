// Which field names announce a secret, in every spelling, and which only resemble such names.
import { describe, expect, it } from 'vitest'
import { classifyName } from '../../src/observe/log/secret-names.ts'

const capital = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1)

/** `stripe key` in each of the usual spellings. */
function spellings(words: string): readonly string[] {
  const list = words.split(' ')
  const pascal = list.map(capital).join('')
  return [
    pascal.charAt(0).toLowerCase() + pascal.slice(1),
    pascal,
    list.join('_'),
    list.join('-'),
    list.map(capital).join('-'),
    list.join('_').toUpperCase(),
    list.join(' '),
    list.join('.'),
  ]
}

const HIDDEN =
  'token,webhook token,session token,secret,client secret,stripe key,api key,x api key,private key,private key pem,' +
  'x hub signature,x hub signature 256,stripe signature,signature,password,passwd,pwd,passphrase,db password,db pass,' +
  'password hash,new password again,authorization,proxy authorization,authorization header,cookie,set cookie,' +
  'credential,credentials,aws credentials,token value,token 2,secret v2,signing key,encryption key base64,pem,tls pem,' +
  'jwt,bearer,auth,basic auth,otp,csrf,authorization code,access key,account key,hmac,sig'

const SHOWN =
  'key,keys,lane key,dedupe key,idempotency key,primary key,public key,cache key,key count,key id,flow,run,tenant,' +
  'token count,token type,token expires at,secret name,access key id,password length,signature algorithm,author,' +
  'authority,authored by,design,signal,pass through,monkey,keyed,keyed by,keyboard,turkey,tokenizer,secretary,bypass,' +
  'passenger,cookie count,permit,broken,significant,error,at,counts,level,compass,signup'

describe('names', () => {
  it.each(HIDDEN.split(','))('%s is hidden in every spelling', (words) => {
    for (const name of spellings(words)) expect([name, classifyName(name)]).not.toEqual([name, 'none'])
  })

  it.each(SHOWN.split(','))('%s is shown in every spelling', (words) => {
    for (const name of spellings(words)) expect([name, classifyName(name)]).toEqual([name, 'none'])
  })

  it('names in small letters without separators are recognised too', () => {
    for (const name of ['apikey', 'accesstoken', 'clientsecret', 'privatekey', 'dbpassword', 'XAPIKEY', 'AUTHTOKEN']) {
      expect([name, classifyName(name)]).toEqual([name, 'whole'])
    }
  })

  it('a name that may also be of a count hides only texts', () => {
    for (const name of ['tokens', 'maxTokens', 'secrets', 'apiKeys', 'cookies', 'tokenUsage', 'passwordResets']) {
      expect([name, classifyName(name)]).toEqual([name, 'texts'])
    }
  })

  it('no name takes long to check', () => {
    for (const part of ['a', 'A', 'aA', '_', 'key', 'Key_', 'token', '9', 'é']) classifyName(part.repeat(100_000))
  })
})
