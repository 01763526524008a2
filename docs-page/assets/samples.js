// The same request as code, in several languages. Each reads the key from the environment variable
// API_KEY, and none lets a number of the answer be rounded.

/**
 * A request.
 * @typedef {{ method: string, url: string, keyed: boolean, headers: [string, string][], body?: string }} Call
 */

const shell = (text) => `'${text.replaceAll("'", "'\\''")}'`
// JSON's strings are those of JavaScript and Python, too.
const string = (text) => JSON.stringify(text)

/** @param {Call} call */
function curl({ method, url, keyed, headers, body }) {
  const implied = body === undefined ? 'GET' : 'POST'
  return [
    `curl -i ${method === implied ? '' : `-X ${method} `}${shell(url)}`,
    ...(keyed ? ['-H "Authorization: Bearer $API_KEY"'] : []),
    ...headers.map(([name, value]) => `-H ${shell(`${name}: ${value}`)}`),
    ...(body === undefined ? [] : [`--data-raw ${shell(body)}`]),
  ].join(' \\\n  ')
}

/** @param {Call} call */
function nodeJs({ method, url, keyed, headers, body }) {
  const lines = [
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is a template where it is pasted
    ...(keyed ? ['    Authorization: `Bearer ${process.env.API_KEY}`,'] : []),
    ...headers.map(([name, value]) => `    ${string(name)}: ${string(value)},`),
  ]
  return `// Node.js, as a module: a file that ends in .mjs
const response = await fetch(${string(url)}, {
  method: ${string(method)},
  headers: {
${lines.join('\n')}
  },${body === undefined ? '' : `\n  body: ${string(body)},`}
})
console.log(response.status, await response.text()) // json() would round great ids`
}

/** @param {Call} call */
function python({ method, url, keyed, headers, body }) {
  const lines = [
    ...(keyed ? [`        "Authorization": "Bearer " + os.environ["API_KEY"],`] : []),
    ...headers.map(([name, value]) => `        ${string(name)}: ${string(value)},`),
  ]
  return `import os
from urllib.error import HTTPError
from urllib.request import Request, urlopen

request = Request(
    ${string(url)},
    method=${string(method)},
    headers={
${lines.join('\n')}
    },${body === undefined ? '' : `\n    data=${string(body)}.encode(),`}
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
