// The same request as code, in several languages. Each reads the key from the environment variable
// API_KEY, and none lets a number of the answer be rounded.

/** @typedef {import('./samples.d.ts').Call} Call */

const shell = (text) => `'${text.replaceAll("'", "'\\''")}'`
// JSON's strings are those of JavaScript and Python, too.
const string = (text) => JSON.stringify(text)

/** The address, with a place for a key that stands there. */
const urlOf = ({ url, key }) =>
  key?.in === 'query' ? `${url}${url.includes('?') ? '&' : '?'}${key.name}=API_KEY` : url

/** The header of the key, written as a language does. */
const keyHeader = ({ key }, write) => (key?.in === 'header' ? [write(key)] : [])

/** @param {Call} call */
function curl(call) {
  const { method, headers, body } = call
  const implied = body === undefined ? 'GET' : 'POST'
  return [
    `curl -i ${method === implied ? '' : `-X ${method} `}${shell(urlOf(call))}`,
    ...keyHeader(call, ({ name, prefix }) => `-H "${name}: ${prefix}$API_KEY"`),
    ...headers.map(([name, value]) => `-H ${shell(`${name}: ${value}`)}`),
    ...(body === undefined ? [] : [`--data-raw ${shell(body)}`]),
  ].join(' \\\n  ')
}

/**
 * A body as an object of the language, in which variables can be put; as a text where that would
 * change a number.
 */
function literalOf(body, isExact, write) {
  const check = (name, value, { source }) => {
    // In an object, __proto__ is no name like others.
    if (name === '__proto__' || (typeof value === 'number' && !isExact(source))) throw name
    return value
  }
  try {
    JSON.parse(body, check)
  } catch {
    return string(body)
  }
  return write(body.trim())
}

const isDouble = (source) => String(Number(source)) === source

const javaScriptBody = (body) =>
  literalOf(body, isDouble, (json) => `JSON.stringify(${json.replaceAll('\n', '\n  ')})`)

const PYTHON = { true: 'True', false: 'False', null: 'None' }

const pythonBody = (body) =>
  literalOf(
    body,
    (source) => /^-?\d+$/.test(source) || isDouble(source),
    (json) => {
      const object = json
        .replaceAll('\n', '\n    ')
        .replaceAll(/"(?:[^"\\]|\\.)*"|true|false|null/g, (token) => {
          return PYTHON[token] ?? string(JSON.parse(token))
        })
      return `json.dumps(${object})`
    },
  )

const identifier = (name) => (/^\w+$/.test(name) ? name : string(name))

/** @param {Call} call */
function nodeJs(call) {
  const { method, headers, body } = call
  const lines = [
    ...keyHeader(
      call,
      ({ name, prefix }) => `    ${identifier(name)}: \`${prefix}\${process.env.API_KEY}\`,`,
    ),
    ...headers.map(([name, value]) => `    ${string(name)}: ${string(value)},`),
  ]
  const block = lines.length > 0 ? `\n  headers: {\n${lines.join('\n')}\n  },` : ''
  return `// Node.js, as a module: a file that ends in .mjs
const response = await fetch(${string(urlOf(call))}, {
  method: ${string(method)},${block}${body === undefined ? '' : `\n  body: ${javaScriptBody(body)},`}
})
console.log(response.status, await response.text()) // json() would round great ids`
}

/** @param {Call} call */
function python(call) {
  const { method, headers, body } = call
  const lines = [
    ...keyHeader(
      call,
      ({ name, prefix }) => `        ${string(name)}: ${string(prefix)} + os.environ["API_KEY"],`,
    ),
    ...headers.map(([name, value]) => `        ${string(name)}: ${string(value)},`),
  ]
  const block = lines.length > 0 ? `\n    headers={\n${lines.join('\n')}\n    },` : ''
  const data = body === undefined ? '' : pythonBody(body)
  return `${data.startsWith('json') ? 'import json\n' : ''}import os
from urllib.error import HTTPError
from urllib.request import Request, urlopen

request = Request(
    ${string(urlOf(call))},
    method=${string(method)},${block}${data && `\n    data=${data}.encode(),`}
)
try:
    response = urlopen(request)
except HTTPError as error:
    response = error  # an answer, too
with response:
    print(response.status, response.read().decode())`
}

/** Each language with how it writes a call. */
export const languages = { curl, 'Node.js': nodeJs, Python: python }
