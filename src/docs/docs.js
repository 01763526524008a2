// Shows the OpenAPI document with Swagger UI: https://swagger.io/docs/open-source-tools/swagger-ui/usage/configuration/

// Calls go to the server that this page came from, whatever its public address is.
const here = { url: `${location.origin}/v1`, description: 'This server' }

const response = await fetch('/v1/openapi.json')
const spec = await response.json()
spec.servers = [here, ...spec.servers.filter(({ url }) => url !== here.url)]

SwaggerUIBundle({
  spec,
  dom_id: '#docs',
  deepLinking: true,
  displayRequestDuration: true,
  persistAuthorization: false,
  tryItOutEnabled: true,
  validatorUrl: null, // the validator is at another origin
})
