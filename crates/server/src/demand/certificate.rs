//! The certificate of a data server.

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use unitape_client::Fingerprint;

/// A certificate, ready for TLS.
pub(super) struct ServerCertificate {
    pub config: ServerConfig,
    pub fingerprint: Fingerprint,
}

impl ServerCertificate {
    /// Reads a chain of certificates and its private key from PEM files.
    pub fn load(chain: &Path, key: &Path) -> Result<Self, String> {
        let certificate_error = |path: &Path, reason: String| format!("{}: {reason}", path.display());
        let certificates = CertificateDer::pem_file_iter(chain)
            .and_then(|all| all.collect::<Result<Vec<_>, _>>())
            .map_err(|e| certificate_error(chain, e.to_string()))?;
        if certificates.is_empty() {
            return Err(certificate_error(chain, "there is no certificate in it".to_owned()));
        }
        let private = PrivateKeyDer::from_pem_file(key).map_err(|e| certificate_error(key, e.to_string()))?;
        Self::new(certificates, private).map_err(|e| certificate_error(key, e))
    }

    /// Makes a certificate, which nobody vouches for: clients know it by its fingerprint.
    pub fn generate(ip: IpAddr) -> Result<Self, String> {
        let text = |e: rcgen::Error| e.to_string();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).map_err(text)?;
        params.subject_alt_names.push(SanType::IpAddress(ip));
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "unitape data server");
        let key = KeyPair::generate().map_err(text)?;
        let certificate = params.self_signed(&key).map_err(text)?;
        let private = PrivatePkcs8KeyDer::from(key.serialize_der());
        Self::new(vec![certificate.der().clone()], private.into())
    }

    fn new(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Result<Self, String> {
        let fingerprint = Fingerprint::of_certificate(&chain[0]);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
            .map_err(|e| e.to_string())?;
        Ok(Self { config, fingerprint })
    }
}
